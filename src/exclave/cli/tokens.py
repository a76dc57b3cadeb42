"""`exclave tokens`: API tokens of the org."""

from collections.abc import Sequence

import click

from exclave.base.errors import Conflict, NotFound
from exclave.cli.auth import show_grants
from exclave.cli.deps import Session, verb, yes_option
from exclave.cli.inputs import build, read_duration
from exclave.cli.lookup import find_install, gather, is_id, page_options
from exclave.cli.output import show_time
from exclave.cli.root import SuggestingGroup
from exclave.client.pages import collect
from exclave.wire.identity import (
    GrantModel,
    MadeList,
    NewToken,
    Role,
    ScopeKind,
    TokenInfo,
    TokenRevoked,
)

_MOST_TOKENS = 10_000

group = SuggestingGroup("tokens", help="Manage API tokens.")


@verb(group, "list")
@page_options
async def list_tokens(session: Session, limit: int, cursor: str | None) -> None:
    """List the org's tokens, without their secrets."""
    page = await gather(session, session.client.tokens.list, limit, cursor)
    now = session.deps.clock.now()
    rows = [
        [
            token.id,
            token.name,
            token.account,
            f"{token.prefix}…",
            show_grants(token.grants, instance_admin=token.instance_admin),
            _format_state(token, expired=token.expires_at <= now),
            show_time(token.expires_at),
            show_time(token.last_used_at) or "never",
        ]
        for token in page.items
    ]
    headers = ["ID", "NAME", "ACCOUNT", "TOKEN", "ROLES", "STATE", "EXPIRES", "LAST USED"]
    session.out.show(page, session.out.table(headers, rows))


@verb(group, "create")
@click.argument("name")
@click.option("--account", help="Account of the token; created if missing.  [default: NAME]")
@click.option(
    "--role",
    "roles",
    type=click.Choice([role.value for role in Role]),
    default=["viewer"],
    multiple=True,
    show_default=True,
    help="Role of the token. Can be repeated.",
)
@click.option("--install", metavar="NAME|ID", help="Restrict the token to this install.")
@click.option("--app", metavar="NAME|ID", help="Restrict the token to this app and its installs.")
@click.option("--instance-admin", is_flag=True, help="Allow the token to create orgs.")
@click.option(
    "--expires-in",
    default="90d",
    show_default=True,
    help="Lifetime of the token, such as 90d, 12h, 30m or 45s.",
)
async def create(
    session: Session,
    name: str,
    account: str | None,
    roles: tuple[str, ...],
    install: str | None,
    app: str | None,
    expires_in: str,
    *,
    instance_admin: bool,
) -> None:
    """Create a token and print it once."""
    body = build(
        NewToken,
        name=name,
        account=account or name,
        grants=await _make_grants(session, roles, install, app),
        expires_in_s=read_duration(expires_in),
        instance_admin=instance_admin,
    )
    made = await session.client.tokens.create(body)
    session.out.show(made, made.token)
    if not session.out.json_mode:
        until = show_time(made.expires_at)
        session.out.say(f"Created token `{made.name}` ({made.id}), valid until {until}.")
        session.out.say("Store it: it is not shown again.")
        if made.counts_as:
            session.out.say(f"It counts as {made.counts_as} until another admin confirms it:")
            session.out.say(f"  exclave tokens confirm {made.id}")


async def _make_grants(
    session: Session, roles: Sequence[str], install: str | None, app: str | None
) -> list[GrantModel]:
    if install and app:
        raise click.UsageError("pass --install or --app, not both")
    scope, scope_id = ScopeKind.ORG, ""
    if install:
        scope, scope_id = ScopeKind.INSTALL, await find_install(session, install)
    if app:
        scoped = await session.client.apps.get(app)
        scope, scope_id = ScopeKind.APP, scoped.id
    return [GrantModel(role=Role(role), scope=scope, scope_id=scope_id) for role in roles]


@verb(group, "revoke")
@click.argument("token", metavar="NAME|ID")
@click.option(
    "--cascade", is_flag=True, help="Also revoke all credentials that were created with it."
)
@click.option("--runners", is_flag=True, help="Also revoke the runners that were enrolled with it.")
@click.option("--dry-run", is_flag=True, help="Show what would be revoked without revoking it.")
@yes_option
async def revoke(
    session: Session, token: str, *, cascade: bool, runners: bool, dry_run: bool, yes: bool
) -> None:
    """Revoke a token at once; lists what was created with it and stays valid."""
    token_id = await find_token(session, token)
    reach = {"cascade": cascade, "runners": runners}
    if not dry_run:
        more = ""
        if (cascade or runners) and not yes:
            preview = await session.client.tokens.revoke(token_id, **reach, dry_run=True)
            more = f" and with it {_count(preview.revoked) or 'nothing else'}"
        session.confirm(f"Revoke the token {token_id}{more}?", yes=yes)
    done = await session.client.tokens.revoke(token_id, **reach, dry_run=dry_run)
    rows = [
        *([item.kind, item.id, item.name, "revoked"] for item in done.revoked.items),
        *([item.kind, item.id, item.name, "still valid"] for item in done.still_valid.items),
    ]
    session.out.show(done, session.out.table(["KIND", "ID", "NAME", "NOW"], rows))
    if not session.out.json_mode:
        _print_revoked(session, done)


@verb(group, "confirm")
@click.argument("token", metavar="NAME|ID")
async def confirm(session: Session, token: str) -> None:
    """Confirm that a token belongs to another person than its creator (four eyes)."""
    token_id = await find_token(session, token)
    await session.client.tokens.confirm(token_id)
    session.out.show({"id": token_id, "confirmed": True}, "")
    if not session.out.json_mode:
        session.out.say(f"Confirmed {token_id}.")


async def find_token(session: Session, text: str) -> str:
    """Return the id of a valid token given by name or id."""
    if is_id(text):
        return text
    page = await collect(session.client.tokens.list, limit=_MOST_TOKENS)
    now = session.deps.clock.now()
    ids = [
        item.id
        for item in page.items
        if item.name == text and item.revoked_at is None and item.expires_at > now
    ]
    if len(ids) == 1:
        return ids[0]
    if ids:
        raise Conflict(
            f"{len(ids)} valid tokens are named `{text}`",
            hint=f"Pass the id of the one you mean: {', '.join(ids[:5])}.",
        )
    raise NotFound(
        f"there is no valid token `{text}`", hint="`exclave tokens list` shows them all."
    )


def _print_revoked(session: Session, done: TokenRevoked) -> None:
    count, left = _count(done.revoked), _count(done.still_valid)
    verb_ = "Would revoke" if done.dry_run else "Revoked"
    session.out.say(f"{verb_} {done.id}{f', and with it {count}' if count else ''}.")
    if left:
        session.out.say(f"Created with it and still valid: {left}.")
        session.out.say("`--cascade` revokes credentials, `--runners` runners enrolled with them.")


def _count(made: MadeList) -> str:
    """Return counts as text, such as `2 tokens, 1 stack code`."""
    return ", ".join(
        f"{count} {kind.replace('_', ' ')}{'' if count == 1 else 's'}"
        for kind, count in made.counts.items()
    )


def _format_state(token: TokenInfo, *, expired: bool) -> str:
    if token.revoked_at is not None:
        return "revoked"
    if expired:
        return "expired"
    return f"valid, counts as {token.counts_as}" if token.counts_as else "valid"
