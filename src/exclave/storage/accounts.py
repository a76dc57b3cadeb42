"""Queries for orgs, accounts and API tokens."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import bindparam, insert, select, update

from exclave.domain.accounts import ApiToken, ListedToken, Org, write_grants
from exclave.domain.identity import AccountId, Grant, OrgId, TokenId, User
from exclave.storage.engine.database import Tx
from exclave.storage.engine.statements import Prepared
from exclave.storage.tables.identity import accounts, api_tokens, orgs

_people = accounts.alias("people")
_ORG_COLUMNS = (orgs.c.id, orgs.c.name, orgs.c.created_at)
_TOKEN_COLUMNS = tuple(column for column in api_tokens.c if column.name != "hash")


class TokenKey(NamedTuple):
    """Which token of which org."""

    org_id: OrgId
    id: TokenId


class _UserRow(NamedTuple):
    org_id: OrgId
    id: TokenId
    account_id: AccountId
    grants: tuple[Grant, ...]
    last_used_at: datetime | None
    person_id: AccountId | None
    instance_admin: bool | None
    account: str
    four_eyes: bool | None


def add_org(tx: Tx, org: OrgId, name: str) -> None:
    """Create a tenant."""
    tx.run(insert(orgs).values(id=org, name=name, created_at=tx.now))


def find_org(tx: Tx, org: OrgId) -> Org | None:
    """Find a tenant."""
    return tx.first(select(*_ORG_COLUMNS).where(orgs.c.id == org), Org)


def find_org_named(tx: Tx, name: str) -> Org | None:
    """Find a tenant by its unique name."""
    return tx.first(select(*_ORG_COLUMNS).where(orgs.c.name == name), Org)


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
            grants=write_grants(grants),
            created_at=tx.now,
            expires_at=expires_at,
            instance_admin=instance_admin,
            parent_id=parent,
            person_id=person,
        )
    )


_USER = Prepared(
    select(
        api_tokens.c.org_id,
        api_tokens.c.id,
        api_tokens.c.account_id,
        api_tokens.c.grants,
        api_tokens.c.last_used_at,
        api_tokens.c.person_id,
        api_tokens.c.instance_admin,
        accounts.c.name.label("account"),
        orgs.c.four_eyes,
    )
    .join(
        accounts,
        (accounts.c.org_id == api_tokens.c.org_id) & (accounts.c.id == api_tokens.c.account_id),
    )
    .join(orgs, orgs.c.id == api_tokens.c.org_id)
    .where(api_tokens.c.hash == bindparam("hash"), api_tokens.c.revoked_at.is_(None))
    .where(api_tokens.c.expires_at > bindparam("now")),
    _UserRow,
)


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
        grants=row.grants,
        acts_as=row.person_id,
        instance_admin=bool(row.instance_admin),
        four_eyes=bool(row.four_eyes),
    )
    return user, row.last_used_at


def note_token_uses(tx: Tx, used: Iterable[tuple[OrgId, TokenId]]) -> None:
    """Store the current time as the last use of tokens."""
    for org, token in used:
        mine = (api_tokens.c.org_id == org, api_tokens.c.id == token)
        tx.run(update(api_tokens).where(*mine).values(last_used_at=tx.now))


def list_tokens(tx: Tx, org: OrgId, after: str, limit: int) -> Sequence[ListedToken]:
    """List tokens without their hashes, oldest first."""
    return tx.all(
        select(
            *_TOKEN_COLUMNS,
            accounts.c.name.label("account"),
            _people.c.name.label("person"),
        )
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
        .limit(limit),
        ListedToken,
    )


def find_token_anywhere(tx: Tx, token: TokenId) -> TokenKey | None:
    """Find a token of any org, for the operator of the instance."""
    query = select(api_tokens.c.org_id, api_tokens.c.id).where(api_tokens.c.id == token)
    return tx.first(query, TokenKey)


def set_instance_admin(tx: Tx, org: OrgId, token: TokenId, *, on: bool) -> None:
    """Set whether a token may create orgs."""
    mine = (api_tokens.c.org_id == org, api_tokens.c.id == token)
    tx.run(update(api_tokens).where(*mine).values(instance_admin=on))


def find_token(tx: Tx, org: OrgId, token: TokenId) -> ApiToken | None:
    """Find a token, without its hash."""
    mine = (api_tokens.c.org_id == org, api_tokens.c.id == token)
    return tx.first(select(*_TOKEN_COLUMNS).where(*mine), ApiToken)


def revoke_token(tx: Tx, org: OrgId, token: TokenId) -> None:
    """Revoke a token that is not revoked yet."""
    mine = (api_tokens.c.org_id == org, api_tokens.c.id == token)
    tx.run(
        update(api_tokens).where(*mine, api_tokens.c.revoked_at.is_(None)).values(revoked_at=tx.now)
    )
