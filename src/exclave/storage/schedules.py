"""Queries for schedules: what is due, and taking a tick exactly once."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import delete, insert, select, update

from exclave.domain.identity import OrgId
from exclave.storage.engine.database import AnyRow, Tx
from exclave.storage.tables.installs import schedules


def list_schedules(tx: Tx, org: OrgId, install: str) -> Sequence[AnyRow]:
    """List the schedules of an install."""
    mine = (schedules.c.org_id == org, schedules.c.install_id == install)
    return tx.all(select(schedules).where(*mine).order_by(schedules.c.kind, schedules.c.subject))


def add_schedule(tx: Tx, row: Mapping[str, Any]) -> None:
    """Store a new schedule."""
    tx.run(insert(schedules).values(detail={}, **row))


def update_schedule(tx: Tx, org: OrgId, schedule: str, values: Mapping[str, Any]) -> None:
    """Change a schedule."""
    mine = (schedules.c.org_id == org, schedules.c.id == schedule)
    tx.run(update(schedules).where(*mine).values(**values))


def drop_schedule(tx: Tx, org: OrgId, schedule: str) -> None:
    """Remove a schedule."""
    tx.run(delete(schedules).where(schedules.c.org_id == org, schedules.c.id == schedule))


def drop_schedules(tx: Tx, org: OrgId, install: str) -> None:
    """Remove all schedules of an install."""
    mine = (schedules.c.org_id == org, schedules.c.install_id == install)
    tx.run(delete(schedules).where(*mine))


def list_due(tx: Tx, limit: int) -> Sequence[AnyRow]:
    """List schedules of all orgs whose time has come, the longest due first."""
    due = select(schedules).where(schedules.c.next_at <= tx.now)
    return tx.all(due.order_by(schedules.c.next_at).limit(limit))


def read_next(tx: Tx) -> datetime | None:
    """Return when the next schedule of any org is due."""
    row = tx.first(select(schedules.c.next_at).order_by(schedules.c.next_at).limit(1))
    return None if row is None else row.next_at


def claim_tick(tx: Tx, row: AnyRow, next_at: datetime) -> bool:
    """Claim a due tick; return True at exactly one of the servers that see it."""
    same = (
        schedules.c.org_id == row.org_id,
        schedules.c.id == row.id,
        schedules.c.next_at == row.next_at,
    )
    values = {"next_at": next_at, "last_at": tx.now}
    return tx.run(update(schedules).where(*same).values(**values)).rowcount == 1
