"""Queries for the credentials of registry clients."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import bindparam, delete, func, insert, select

from exclave.domain.identity import OrgId, QueueId, TokenId
from exclave.domain.registry_tokens import ID_CHARS, RegistryToken
from exclave.storage.engine.database import Tx
from exclave.storage.engine.statements import Prepared
from exclave.storage.tables.apps import apps
from exclave.storage.tables.installs import app_installs
from exclave.storage.tables.registry import registry_tokens


def add_registry_token(
    tx: Tx,
    org: OrgId,
    *,
    hashed: str,
    repository: str,
    push: bool,
    by: str,
    parent: TokenId,
    expires_at: datetime,
) -> None:
    """Store a token by its hash, and the API token that asked for it."""
    row = {
        "org_id": org,
        "hash": hashed,
        "repository": repository,
        "push": push,
        "parent_id": parent,
    }
    tx.run(
        insert(registry_tokens).values(
            **row, created_by=by, created_at=tx.now, expires_at=expires_at
        )
    )


def find_registry_token(tx: Tx, hashed: str) -> RegistryToken | None:
    """Find a token that still opens something."""
    valid = (registry_tokens.c.hash == hashed, registry_tokens.c.expires_at > tx.now)
    return tx.first(select(registry_tokens).where(*valid), RegistryToken)


_start = func.substr(registry_tokens.c.hash, 1, ID_CHARS)


def list_registry_tokens(tx: Tx, org: OrgId, after: str, limit: int) -> Sequence[RegistryToken]:
    """List the tokens that still open something, in the order of their ids."""
    mine = (registry_tokens.c.org_id == org, registry_tokens.c.expires_at > tx.now)
    query = select(registry_tokens).where(*mine, _start > after)
    return tx.all(query.order_by(_start).limit(limit), RegistryToken)


def drop_registry_token(tx: Tx, org: OrgId, start: str) -> bool:
    """Delete a token by the start of its hash; return whether there was one."""
    mine = (registry_tokens.c.org_id == org, _start == start)
    return tx.run(delete(registry_tokens).where(*mine)).rowcount > 0


_DROP_EXPIRED = Prepared(
    delete(registry_tokens).where(registry_tokens.c.expires_at <= bindparam("now"))
)


def drop_expired_registry_tokens(tx: Tx) -> None:
    """Delete expired tokens of all orgs."""
    tx.count(_DROP_EXPIRED, now=tx.now)


def find_app_name(tx: Tx, org: OrgId, install: QueueId) -> str | None:
    """Return the name of an install's app."""
    row = tx.first(
        select(apps.c.name)
        .join(
            app_installs,
            (app_installs.c.org_id == apps.c.org_id) & (app_installs.c.app_id == apps.c.id),
        )
        .where(app_installs.c.org_id == org, app_installs.c.install_id == install)
    )
    return None if row is None else str(row.name)
