"""Queries for orgs, accounts and API tokens."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from sqlalchemy import bindparam, insert, select, update

from exclave.domain.identity import AccountId, Grant, OrgId, Role, ScopeKind, TokenId, User
from exclave.storage.engine.database import AnyRow, Tx
from exclave.storage.engine.statements import Prepared
from exclave.storage.tables.core import accounts, api_tokens, orgs

_people = accounts.alias("people")
_TOKEN_COLUMNS = (
    *(c for c in api_tokens.c if c.name != "hash"),
    accounts.c.name.label("account"),
    _people.c.name.label("person"),
)


def add_org(tx: Tx, org: OrgId, name: str) -> None:
    """Create a tenant."""
    tx.run(insert(orgs).values(id=org, name=name, created_at=tx.now))


def find_org(tx: Tx, org: OrgId) -> AnyRow | None:
    """Find a tenant."""
    return tx.first(select(orgs).where(orgs.c.id == org))


def find_org_named(tx: Tx, name: str) -> AnyRow | None:
    """Find a tenant by its unique name."""
    return tx.first(select(orgs).where(orgs.c.name == name))


def has_orgs(tx: Tx) -> bool:
    """Return whether the instance has any org."""
    return tx.first(select(orgs.c.id).limit(1)) is not None


def find_account(tx: Tx, org: OrgId, name: str) -> AccountId | None:
    """Find an account by its name."""
    row = tx.first(select(accounts.c.id).where(accounts.c.org_id == org, accounts.c.name == name))
    return None if row is None else AccountId(row.id)


def add_account(tx: Tx, org: OrgId, account: AccountId, name: str) -> None:
    """Create an account."""
    tx.run(insert(accounts).values(org_id=org, id=account, name=name, created_at=tx.now))


def add_token(
    tx: Tx,
    org: OrgId,
    account: AccountId,
    *,
    token: TokenId,
    name: str,
    prefix: str,
    hashed: str,
    grants: Sequence[Grant],
    expires_at: datetime,
    instance_admin: bool = False,
    parent: TokenId | None = None,
    person: AccountId | None = None,
) -> None:
    """Store a token by its hash."""
    tx.run(
        insert(api_tokens).values(
            org_id=org,
            id=token,
            account_id=account,
            name=name,
            prefix=prefix,
            hash=hashed,
            grants=[[g.role, g.scope, g.scope_id] for g in grants],
            created_at=tx.now,
            expires_at=expires_at,
            instance_admin=instance_admin,
            parent_id=parent,
            person_id=person,
        )
    )


_USER = Prepared(
    select(api_tokens, accounts.c.name.label("account"), orgs.c.four_eyes)
    .join(accounts, (accounts.c.org_id == api_tokens.c.org_id)
          & (accounts.c.id == api_tokens.c.account_id))
    .join(orgs, orgs.c.id == api_tokens.c.org_id)
    .where(api_tokens.c.hash == bindparam("hash"), api_tokens.c.revoked_at.is_(None))
    .where(api_tokens.c.expires_at > bindparam("now"))
)  # fmt: skip


def find_user(tx: Tx, hashed: str) -> tuple[User, datetime | None] | None:
    """Find who a token speaks for, if it is neither expired nor revoked; and its last noted use."""
    row = tx.first(_USER, hash=hashed, now=tx.now)
    if row is None:
        return None
    user = User(
        org=row.org_id,
        account=row.account_id,
        name=row.account,
        token=row.id,
        grants=read_grants(row.grants),
        acts_as=row.person_id,
        instance_admin=bool(row.instance_admin),
        four_eyes=bool(row.four_eyes),
    )
    return user, row.last_used_at


def read_grants(stored: Sequence[Sequence[str]]) -> tuple[Grant, ...]:
    """Read the stored form of grants."""
    return tuple(Grant(Role(role), ScopeKind(scope), on) for role, scope, on in stored)


def note_token_uses(tx: Tx, used: Iterable[tuple[OrgId, TokenId]]) -> None:
    """Store the current time as the last use of tokens."""
    for org, token in used:
        mine = (api_tokens.c.org_id == org, api_tokens.c.id == token)
        tx.run(update(api_tokens).where(*mine).values(last_used_at=tx.now))


def list_tokens(tx: Tx, org: OrgId, after: str, limit: int) -> Sequence[AnyRow]:
    """List tokens without their hashes, oldest first."""
    return tx.all(
        select(*_TOKEN_COLUMNS)
        .join(
            accounts,
            (accounts.c.org_id == api_tokens.c.org_id) & (accounts.c.id == api_tokens.c.account_id),
        )
        .outerjoin(
            _people,
            (_people.c.org_id == api_tokens.c.org_id) & (_people.c.id == api_tokens.c.person_id),
        )
        .where(api_tokens.c.org_id == org, api_tokens.c.id > after)
        .order_by(api_tokens.c.id)
        .limit(limit)
    )


def find_token_anywhere(tx: Tx, token: TokenId) -> AnyRow | None:
    """Find a token of any org, for the operator of the instance."""
    return tx.first(select(api_tokens.c.org_id, api_tokens.c.id).where(api_tokens.c.id == token))


def set_instance_admin(tx: Tx, org: OrgId, token: TokenId, *, on: bool) -> None:
    """Set whether a token may create orgs."""
    mine = (api_tokens.c.org_id == org, api_tokens.c.id == token)
    tx.run(update(api_tokens).where(*mine).values(instance_admin=on))


def find_token(tx: Tx, org: OrgId, token: TokenId) -> AnyRow | None:
    """Find a token, without its hash."""
    mine = (api_tokens.c.org_id == org, api_tokens.c.id == token)
    columns = [c for c in api_tokens.c if c.name != "hash"]
    return tx.first(select(*columns).where(*mine))


def revoke_token(tx: Tx, org: OrgId, token: TokenId) -> None:
    """Revoke a token that is not revoked yet."""
    mine = (api_tokens.c.org_id == org, api_tokens.c.id == token)
    tx.run(
        update(api_tokens).where(*mine, api_tokens.c.revoked_at.is_(None)).values(revoked_at=tx.now)
    )
