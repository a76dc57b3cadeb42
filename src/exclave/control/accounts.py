"""Orgs, accounts and API tokens."""

from datetime import timedelta

from exclave.base.digests import hash_token
from exclave.base.errors import Conflict, NotFound
from exclave.control.access import API_TOKEN, require
from exclave.control.audit import record
from exclave.control.deps import Deps
from exclave.control.pages import clamp, make_page
from exclave.domain.identity import (
    AccountId,
    Grant,
    OrgId,
    QueueId,
    QueueKind,
    Right,
    Role,
    TokenId,
    User,
)
from exclave.storage import accounts, queues
from exclave.storage.database import AnyRow, Tx
from exclave.wire.identity import (
    GrantModel,
    NewToken,
    OrgCreated,
    OrgReply,
    TokenCreated,
    TokenInfo,
    WhoAmI,
)
from exclave.wire.model import Page

PREFIX_CHARS = 12
"""How much of a token is kept in clear, so that people can tell tokens apart."""
FIRST_TOKEN_S = 366 * 24 * 3600.0


def create_org(tx: Tx, deps: Deps, name: str, admin: str) -> OrgCreated:
    """Create a tenant with its build queue, its first admin and that admin's token."""
    if accounts.find_org_named(tx, name) is not None:
        raise Conflict(f"there is an org named `{name}` already", hint="Choose another name.")
    org = OrgId(deps.ids.new("org"))
    build = QueueId(deps.ids.new("bld"))
    accounts.add_org(tx, org, name)
    queues.add_queue(tx, org, build, QueueKind.BUILD)
    wish = NewToken(
        name="first", account=admin, grants=[GrantModel(role=Role.ADMIN)],
        expires_in_s=FIRST_TOKEN_S,
    )  # fmt: skip
    made = _create_token(tx, deps, org, wish)
    record(tx, deps, org, admin, "org_created", org)
    return OrgCreated(id=org, name=name, created_at=tx.now, build_queue_id=build, token=made.token)


async def add_org(deps: Deps, user: User, name: str) -> OrgCreated:
    """Create another tenant; only an admin may, and becomes its admin too."""
    require(user, Right.ADMINISTER)
    return await deps.db.write(lambda tx: create_org(tx, deps, name, user.name))


async def show_org(deps: Deps, user: User) -> OrgReply:
    """Show the caller's own org."""
    return await deps.db.read(lambda tx: _show_org(tx, user.org))


async def who_am_i(deps: Deps, user: User) -> WhoAmI:
    """Tell who the token speaks for."""
    org = await deps.db.read(lambda tx: _show_org(tx, user.org))
    return WhoAmI(
        org=org, account_id=user.account, account=user.name, token_id=user.token,
        grants=[_show_grant(grant) for grant in user.grants],
    )  # fmt: skip


async def create_token(deps: Deps, user: User, wish: NewToken) -> TokenCreated:
    """Create an API token; its secret is in this reply and nowhere else."""
    require(user, Right.ADMINISTER)

    def create(tx: Tx) -> TokenCreated:
        made = _create_token(tx, deps, user.org, wish)
        record(tx, deps, user.org, user.name, "token_created", made.id, account=wish.account)
        return made

    return await deps.db.write(create)


async def list_tokens(deps: Deps, user: User, cursor: str, limit: int) -> Page[TokenInfo]:
    """List the org's API tokens."""
    require(user, Right.ADMINISTER)
    wanted = clamp(limit)
    rows = await deps.db.read(lambda tx: accounts.list_tokens(tx, user.org, cursor, wanted + 1))
    return make_page(rows, wanted, _show_token)


async def revoke_token(deps: Deps, user: User, token: TokenId) -> None:
    """Revoke an API token at once."""
    require(user, Right.ADMINISTER)

    def revoke(tx: Tx) -> None:
        if not accounts.revoke_token(tx, user.org, token):
            raise NotFound("there is no such token")
        record(tx, deps, user.org, user.name, "token_revoked", token)

    await deps.db.write(revoke)


def _create_token(tx: Tx, deps: Deps, org: OrgId, wish: NewToken) -> TokenCreated:
    account = accounts.find_account(tx, org, wish.account)
    if account is None:
        account = AccountId(deps.ids.new("acc"))
        accounts.add_account(tx, org, account, wish.account)
    secret = deps.ids.token(API_TOKEN)
    token = TokenId(deps.ids.new("tok"))
    expires = tx.now + timedelta(seconds=wish.expires_in_s)
    accounts.add_token(
        tx, org, account, token=token, name=wish.name, prefix=secret[:PREFIX_CHARS],
        hashed=hash_token(secret), expires_at=expires,
        grants=[Grant(grant.role, grant.scope, grant.scope_id) for grant in wish.grants],
    )  # fmt: skip
    return TokenCreated(
        id=token, name=wish.name, account=wish.account, prefix=secret[:PREFIX_CHARS],
        grants=wish.grants, created_at=tx.now, expires_at=expires, revoked_at=None,
        last_used_at=None, token=secret,
    )  # fmt: skip


def _show_org(tx: Tx, org: OrgId) -> OrgReply:
    row = accounts.find_org(tx, org)
    if row is None:
        raise NotFound("there is no such org")
    build = queues.find_build_queue(tx, org)
    return OrgReply(id=row.id, name=row.name, created_at=row.created_at, build_queue_id=build)


def _show_grant(grant: Grant) -> GrantModel:
    return GrantModel(role=grant.role, scope=grant.scope, scope_id=grant.scope_id)


def _show_token(row: AnyRow) -> TokenInfo:
    return TokenInfo(
        id=row.id, name=row.name, account=row.account, prefix=row.prefix,
        grants=[_show_grant(grant) for grant in accounts.read_grants(row.grants)],
        created_at=row.created_at, expires_at=row.expires_at, revoked_at=row.revoked_at,
        last_used_at=row.last_used_at,
    )  # fmt: skip
