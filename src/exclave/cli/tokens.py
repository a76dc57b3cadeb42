"""`exclave tokens`: who may use the Control API, and for how long."""

import click

from exclave.cli.auth import show_grants
from exclave.cli.deps import Session, verb, yes_option
from exclave.cli.inputs import build, read_duration
from exclave.cli.lookup import find_install, gather, page_options
from exclave.cli.output import show_time
from exclave.cli.root import SuggestingGroup
from exclave.client.apps import AppCalls
from exclave.wire.identity import GrantModel, NewToken, Role, ScopeKind, TokenInfo

group = SuggestingGroup("tokens", help="API tokens: list, create, revoke.")


@verb(group, "list")
@page_options
async def list_tokens(session: Session, limit: int, cursor: str | None) -> None:
    """List the org's tokens; their secrets are not kept anywhere."""
    page = await gather(session, session.client.list_tokens, limit, cursor)
    now = session.deps.clock.now()
    rows = [
        [
            token.id,
            token.name,
            token.account,
            f"{token.prefix}…",
            show_grants(token.grants),
            _tell_state(token, expired=token.expires_at <= now),
            show_time(token.expires_at),
            show_time(token.last_used_at) or "never",
        ]
        for token in page.items
    ]
    headers = ["ID", "NAME", "ACCOUNT", "TOKEN", "ROLES", "STATE", "EXPIRES", "LAST USED"]
    session.out.show(page, session.out.table(headers, rows))


@verb(group, "create")
@click.argument("name")
@click.option("--account", help="Whose token it is; made if missing.  [default: NAME]")
@click.option(
    "--role", type=click.Choice([role.value for role in Role]), default="viewer", show_default=True
)
@click.option("--install", metavar="NAME|ID", help="The role reaches this install only.")
@click.option("--app", metavar="NAME|ID", help="The role reaches this app and its installs only.")
@click.option("--expires-in", default="90d", show_default=True, help="90d, 12h, 30m or 45s.")
async def create(
    session: Session,
    name: str,
    account: str | None,
    role: str,
    install: str | None,
    app: str | None,
    expires_in: str,
) -> None:
    """Create a token and print it, once."""
    body = build(
        NewToken,
        name=name,
        account=account or name,
        grants=[await _make_grant(session, Role(role), install, app)],
        expires_in_s=read_duration(expires_in),
    )
    made = await session.client.create_token(body)
    session.out.show(made, made.token)
    if not session.out.json_mode:
        until = show_time(made.expires_at)
        session.out.say(f"Created token `{made.name}` ({made.id}), valid until {until}.")
        session.out.say("Keep it: it is not shown again.")


async def _make_grant(
    session: Session, role: Role, install: str | None, app: str | None
) -> GrantModel:
    if install and app:
        raise click.UsageError("give one of --install and --app, not both")
    if install:
        scope_id = await find_install(session, install)
        return GrantModel(role=role, scope=ScopeKind.INSTALL, scope_id=scope_id)
    if app:
        found = await AppCalls(session.client.calls).get_app(app)
        return GrantModel(role=role, scope=ScopeKind.APP, scope_id=found.id)
    return GrantModel(role=role)


@verb(group, "revoke")
@click.argument("token_id", metavar="ID")
@yes_option
async def revoke(session: Session, token_id: str, *, yes: bool) -> None:
    """Make a token worthless, at once."""
    session.confirm(f"Revoke the token {token_id}?", yes=yes)
    await session.client.revoke_token(token_id)
    session.out.show({"id": token_id, "revoked": True}, "")
    if not session.out.json_mode:
        session.out.say(f"Revoked {token_id}.")


def _tell_state(token: TokenInfo, *, expired: bool) -> str:
    if token.revoked_at is not None:
        return "revoked"
    return "expired" if expired else "valid"
