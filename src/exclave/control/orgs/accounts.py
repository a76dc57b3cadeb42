"""Orgs, accounts and API tokens."""

from datetime import timedelta

from exclave.base.digests import hash_token
from exclave.base.errors import Conflict, NotFound
from exclave.control.access import API_TOKEN, hold_token, require, require_instance_admin
from exclave.control.audit import OPERATOR, record
from exclave.control.deps import Deps
from exclave.control.four_eyes import is_on
from exclave.control.limits.quotas import check_count
from exclave.control.pagination import clamp, make_page
from exclave.domain.accounts import ListedToken
from exclave.domain.four_eyes import find_person
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
from exclave.domain.quotas import Counted
from exclave.storage import accounts, queues
from exclave.storage.engine.database import Tx
from exclave.storage.four_eyes import find_name
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


def create_org(
    tx: Tx, deps: Deps, name: str, admin: str, *, instance_admin: bool = False
) -> OrgCreated:
    """Create a tenant with its build queue, its first admin and that admin's token.

    The first admin of the first org is the first instance admin: somebody has to be.
    """
    is_first = not accounts.has_orgs(tx)
    if accounts.find_org_named(tx, name) is not None:
        raise Conflict(f"there is an org named `{name}` already", hint="Choose another name.")
    org = OrgId(deps.ids.new("org"))
    build = QueueId(deps.ids.new("bld"))
    accounts.add_org(tx, org, name)
    queues.add_queue(tx, org, build, QueueKind.BUILD)
    request = NewToken(
        name="first",
        account=admin,
        grants=[GrantModel(role=Role.ADMIN)],
        expires_in_s=FIRST_TOKEN_S,
        instance_admin=instance_admin or is_first,
    )
    made = _create_token(tx, deps, org, request)
    record(tx, deps, org, admin, "org_created", org)
    return OrgCreated(id=org, name=name, created_at=tx.now, build_queue_id=build, token=made.token)


async def add_org(deps: Deps, user: User, name: str) -> OrgCreated:
    """Create another tenant; an instance admin may, and becomes its admin too.

    Nobody else gets as far as the name: whether it is taken says which other tenants there are.
    """
    require_instance_admin(user)

    def add(tx: Tx) -> OrgCreated:
        made = create_org(tx, deps, name, user.name)
        record(tx, deps, user.org, user.name, "org_created", made.id, name=name)
        return made

    return await deps.db.write(add)


def set_instance_admin(tx: Tx, deps: Deps, token: TokenId, *, on: bool) -> None:
    """Grant or revoke a token's right to create orgs; for the operator of the instance."""
    row = accounts.find_token_anywhere(tx, token)
    if row is None:
        raise NotFound("there is no such token", hint="`exclave tokens list` shows their ids.")
    accounts.set_instance_admin(tx, row.org_id, token, on=on)
    action = "instance_admin_granted" if on else "instance_admin_taken"
    record(tx, deps, row.org_id, OPERATOR, action, token)


async def show_org(deps: Deps, user: User) -> OrgReply:
    """Show the caller's own org."""
    return await deps.db.read(lambda tx: _show_org(tx, user.org))


async def who_am_i(deps: Deps, user: User) -> WhoAmI:
    """Return the account of the caller's token."""
    org = await deps.db.read(lambda tx: _show_org(tx, user.org))
    return WhoAmI(
        org=org,
        account_id=user.account,
        account=user.name,
        token_id=user.token,
        grants=[_show_grant(grant) for grant in user.grants],
        instance_admin=user.instance_admin,
    )


async def create_token(deps: Deps, user: User, body: NewToken) -> TokenCreated:
    """Create an API token; its secret is in this reply and nowhere else."""
    require(user, Right.ADMINISTER)
    if body.instance_admin:
        require_instance_admin(user)

    def create(tx: Tx) -> TokenCreated:
        hold_token(tx, user)
        check_count(tx, deps, user.org, Counted.TOKENS)
        made = _create_token(tx, deps, user.org, body, user)
        record(tx, deps, user.org, user.name, "token_created", made.id, account=body.account)
        return made

    return await deps.db.write(create)


async def list_tokens(deps: Deps, user: User, cursor: str, limit: int) -> Page[TokenInfo]:
    """List the org's API tokens."""
    require(user, Right.ADMINISTER)
    wanted = clamp(limit)
    rows = await deps.db.read(lambda tx: accounts.list_tokens(tx, user.org, cursor, wanted + 1))
    return make_page(rows, wanted, _show_token)


def _create_token(
    tx: Tx, deps: Deps, org: OrgId, request: NewToken, maker: User | None = None
) -> TokenCreated:
    account = accounts.find_account(tx, org, request.account)
    if account is None:
        account = AccountId(deps.ids.new("acc"))
        accounts.add_account(tx, org, account, request.account)
    person = None
    if maker is not None:
        person = find_person(maker, account, four_eyes=is_on(tx, org))
    secret = deps.ids.token(API_TOKEN)
    token = TokenId(deps.ids.new("tok"))
    expires = tx.now + timedelta(seconds=request.expires_in_s)
    accounts.add_token(
        tx,
        org,
        account,
        token=token,
        name=request.name,
        prefix=secret[:PREFIX_CHARS],
        hashed=hash_token(secret),
        expires_at=expires,
        grants=[Grant(grant.role, grant.scope, grant.scope_id) for grant in request.grants],
        instance_admin=request.instance_admin,
        parent=None if maker is None else maker.token,
        person=person,
    )
    return TokenCreated(
        id=token,
        name=request.name,
        account=request.account,
        prefix=secret[:PREFIX_CHARS],
        grants=request.grants,
        created_at=tx.now,
        expires_at=expires,
        revoked_at=None,
        last_used_at=None,
        token=secret,
        instance_admin=request.instance_admin,
        made_with=None if maker is None else maker.token,
        counts_as=find_name(tx, org, person),
    )


def _show_org(tx: Tx, org: OrgId) -> OrgReply:
    row = accounts.find_org(tx, org)
    if row is None:
        raise NotFound("there is no such org")
    build = queues.find_build_queue(tx, org)
    return OrgReply(id=row.id, name=row.name, created_at=row.created_at, build_queue_id=build)


def _show_grant(grant: Grant) -> GrantModel:
    return GrantModel(role=grant.role, scope=grant.scope, scope_id=grant.scope_id)


def _show_token(row: ListedToken) -> TokenInfo:
    return TokenInfo(
        id=row.id,
        name=row.name,
        account=row.account,
        prefix=row.prefix,
        grants=[_show_grant(grant) for grant in row.grants],
        created_at=row.created_at,
        expires_at=row.expires_at,
        revoked_at=row.revoked_at,
        last_used_at=row.last_used_at,
        instance_admin=bool(row.instance_admin),
        made_with=row.parent_id,
        counts_as=row.person,
    )
