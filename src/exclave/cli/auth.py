"""`exclave auth`: log in, log out, show the current login."""

import sys
from urllib.parse import urlsplit

import click

from exclave.base.addresses import is_loopback
from exclave.base.errors import InvalidInput
from exclave.base.secrets import Secret
from exclave.cli.config import DEFAULT_URL, find_config_file, find_login, store_login
from exclave.cli.deps import Session, verb
from exclave.cli.root import SuggestingGroup
from exclave.cli.terminal import ask_secret
from exclave.client.control_http import check_url
from exclave.wire.identity import GrantModel, WhoAmI

group = SuggestingGroup("auth", help="Log in, log out, show the current login.")


@verb(group, "login")
@click.option("--url", default=DEFAULT_URL, show_default=True, help="URL of the Control API.")
@click.option("--token", help="API token; `-` reads it from stdin.  [default: prompt]")
async def login(session: Session, url: str, token: str | None) -> None:
    """Check a token with the server and store it for later commands."""
    checked = check_url(url)
    secret = _read_token(session, token)
    who = await session.connect(checked, secret).whoami()
    file = find_config_file(session.deps.env)
    store_login(file, checked, secret)
    _warn_about_plain_http(session, checked)
    if not session.out.json_mode:
        session.out.say(f"Logged in to {checked}; stored in {file}")
    _show(session, who, checked, str(file))


@verb(group, "logout")
async def logout(session: Session) -> None:
    """Forget the stored login; the token stays valid until it is revoked."""
    file = find_config_file(session.deps.env)
    existed = file.exists()
    file.unlink(missing_ok=True)
    session.out.show({"logged_out": existed, "file": str(file)}, "")
    if not session.out.json_mode:
        session.out.say(f"Removed {file}" if existed else "You were not logged in.")


@verb(group, "whoami")
async def whoami(session: Session) -> None:
    """Show the account, org and roles behind the token in use."""
    stored = find_login(session.deps.env, session.deps.cwd)
    _show(session, await session.client.whoami(), stored.url, stored.source)


def show_grants(grants: list[GrantModel], *, instance_admin: bool) -> str:
    """Return roles as text, such as `admin` or `operator on install inst…`."""
    roles = [
        grant.role + (f" on {grant.scope} {grant.scope_id}" if grant.scope_id else "")
        for grant in grants
    ]
    return ", ".join([*roles, "instance admin"] if instance_admin else roles)


def _show(session: Session, who: WhoAmI, url: str, source: str) -> None:
    pairs = [
        ("account", who.account),
        ("org", f"{who.org.name} ({who.org.id})"),
        ("roles", show_grants(who.grants, instance_admin=who.instance_admin)),
        ("server", url),
        ("from", source),
    ]
    value = {"url": url, "source": source, **who.model_dump(mode="json")}
    session.out.show(value, session.out.details(pairs))


def _read_token(session: Session, token: str | None) -> Secret:
    if token is None and session.deps.can_ask:
        token = ask_secret("Token")
    elif token == "-":  # noqa: S105 - the usual name of stdin
        token = sys.stdin.readline()
    if not token or not token.strip():
        raise InvalidInput(
            "no token was given, and there is no terminal to ask for it",
            hint="Pipe it in: `exclave auth login --token - < file`.",
        )
    return Secret(token.strip())


def _warn_about_plain_http(session: Session, url: str) -> None:
    parts = urlsplit(url)
    if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
        session.out.say("warning: the token is sent unencrypted; use https outside this machine")
