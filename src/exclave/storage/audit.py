"""Queries for the audit trail and for remembered replies to repeated requests."""

from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

from sqlalchemy import bindparam, delete, select, update

from exclave.base.json_values import Json
from exclave.domain.audit import AuditRecord
from exclave.domain.identity import AccountId, OrgId
from exclave.storage.engine.database import Tx
from exclave.storage.engine.statements import Prepared
from exclave.storage.tables.identity import audit, idempotency


class KeptReply(NamedTuple):
    """What was answered to a request with an idempotency key."""

    request: str
    """A fingerprint of the request."""
    reply: Json
    status: int | None
    """None as long as the reply is not stored."""


def add_entries(tx: Tx, new: Sequence[AuditRecord]) -> None:
    """Record who did what to which thing."""
    tx.insert_each(audit, [entry._asdict() for entry in new])


def list_entries(tx: Tx, org: OrgId, before: str, limit: int) -> Sequence[AuditRecord]:
    """List entries, newest first."""
    where = [audit.c.org_id == org]
    if before:
        where.append(audit.c.id < before)
    query = select(audit).where(*where).order_by(audit.c.id.desc()).limit(limit)
    return tx.all(query, AuditRecord)


def find_reply(tx: Tx, org: OrgId, account: AccountId, key: str) -> KeptReply | None:
    """Find what was answered to a request with this key."""
    where = (
        idempotency.c.org_id == org,
        idempotency.c.account_id == account,
        idempotency.c.key == key,
    )
    columns = (idempotency.c.request, idempotency.c.reply, idempotency.c.status)
    return tx.first(select(*columns).where(*where), KeptReply)


def claim_key(tx: Tx, org: OrgId, account: AccountId, key: str, request: str) -> bool:
    """Reserve a key for a request that is about to run; return whether it was free."""
    row = {"org_id": org, "account_id": account, "key": key, "request": request, "at": tx.now}
    claimed = tx.insert_missing(idempotency).values(row).returning(idempotency.c.key)
    return tx.first(claimed) is not None  # PostgreSQL's driver tells no count of inserted rows


def keep_reply(tx: Tx, org: OrgId, account: AccountId, key: str, status: int, reply: Json) -> None:
    """Store the reply to a request."""
    where = (
        idempotency.c.org_id == org,
        idempotency.c.account_id == account,
        idempotency.c.key == key,
    )
    tx.run(update(idempotency).where(*where).values(status=status, reply=reply))


_DROP_OLD = Prepared(delete(idempotency).where(idempotency.c.at < bindparam("before")))


def drop_old_replies(tx: Tx, keep: timedelta) -> None:
    """Delete replies older than a day, of all orgs."""
    tx.count(_DROP_OLD, before=tx.now - keep)
