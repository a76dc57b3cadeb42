"""Queries for the credentials of registry clients."""

from datetime import datetime

from sqlalchemy import bindparam, delete, insert, select

from exclave.domain.identity import OrgId, QueueId
from exclave.storage.database import AnyRow, Tx
from exclave.storage.statements import Prepared
from exclave.storage.tables_apps import apps
from exclave.storage.tables_installs import app_installs
from exclave.storage.tables_registry import registry_tokens


def add_registry_token(
    tx: Tx, org: OrgId, *, hashed: str, repository: str, push: bool, by: str, expires_at: datetime
) -> None:
    """Store a token by its hash."""
    row = {"org_id": org, "hash": hashed, "repository": repository, "push": push}
    tx.run(
        insert(registry_tokens).values(
            **row, created_by=by, created_at=tx.now, expires_at=expires_at
        )
    )


def find_registry_token(tx: Tx, hashed: str) -> AnyRow | None:
    """Find a token that still opens something."""
    fresh = registry_tokens.c.expires_at > tx.now
    return tx.first(select(registry_tokens).where(registry_tokens.c.hash == hashed, fresh))


_DROP_EXPIRED = Prepared(
    delete(registry_tokens).where(registry_tokens.c.expires_at <= bindparam("now"))
)


def drop_expired_registry_tokens(tx: Tx) -> None:
    """Forget tokens that open nothing any more, of all orgs."""
    tx.count(_DROP_EXPIRED, now=tx.now)


def find_app_name(tx: Tx, org: OrgId, install: QueueId) -> str | None:
    """Tell the name of the app that an install is of."""
    row = tx.first(
        select(apps.c.name)
        .join(app_installs, (app_installs.c.org_id == apps.c.org_id)
              & (app_installs.c.app_id == apps.c.id))
        .where(app_installs.c.org_id == org, app_installs.c.install_id == install)
    )  # fmt: skip
    return None if row is None else str(row.name)
