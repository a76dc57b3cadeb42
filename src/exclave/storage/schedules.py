"""Queries for schedules: what is due, and taking a tick exactly once."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import delete, insert, select, update

from exclave.domain.identity import OrgId
from exclave.domain.schedules import Schedule, ScheduleKind
from exclave.domain.workflows import WorkflowId
from exclave.storage.engine.database import Tx
from exclave.storage.tables.installs import schedules

_SELECT = select(
    schedules.c.org_id.label("org"),
    schedules.c.id,
    schedules.c.install_id,
    schedules.c.kind,
    schedules.c.subject,
    schedules.c.cron,
    schedules.c.next_at,
    schedules.c.note,
    schedules.c.last_workflow_id,
    schedules.c.detail,
)


def list_schedules(tx: Tx, org: OrgId, install: str) -> Sequence[Schedule]:
    """List the schedules of an install."""
    mine = (schedules.c.org_id == org, schedules.c.install_id == install)
    ordered = _SELECT.where(*mine).order_by(schedules.c.kind, schedules.c.subject)
    return tx.all(ordered, Schedule)


def add_schedule(tx: Tx, new: Schedule) -> None:
    """Store a new schedule."""
    tx.run(
        insert(schedules).values(
            org_id=new.org,
            id=new.id,
            install_id=new.install_id,
            kind=new.kind,
            subject=new.subject,
            cron=new.cron,
            detail=dict(new.detail),
            next_at=new.next_at,
            note=new.note,
        )
    )


def set_cron(tx: Tx, org: OrgId, schedule: str, *, cron: str, next_at: datetime, note: str) -> None:
    """Store another cron, and when it is due first."""
    _update(tx, org, schedule, cron=cron, next_at=next_at, note=note)


def set_workflow(tx: Tx, org: OrgId, schedule: str, workflow: WorkflowId) -> None:
    """Store the workflow that the last tick started."""
    _update(tx, org, schedule, last_workflow_id=workflow, note="")


def set_note(tx: Tx, org: OrgId, schedule: str, note: str) -> None:
    """Store why the last tick started nothing."""
    _update(tx, org, schedule, note=note)


def drop_schedule(tx: Tx, org: OrgId, schedule: str) -> None:
    """Remove a schedule."""
    tx.run(delete(schedules).where(schedules.c.org_id == org, schedules.c.id == schedule))


def drop_check(tx: Tx, org: OrgId, install: str, part: str) -> None:
    """Remove the health check of a part that is still to come."""
    tx.run(
        delete(schedules).where(
            schedules.c.org_id == org,
            schedules.c.install_id == install,
            schedules.c.kind == ScheduleKind.HEALTH,
            schedules.c.subject == part,
        )
    )


def drop_schedules(tx: Tx, org: OrgId, install: str) -> None:
    """Remove all schedules of an install."""
    mine = (schedules.c.org_id == org, schedules.c.install_id == install)
    tx.run(delete(schedules).where(*mine))


def list_due(tx: Tx, limit: int) -> Sequence[Schedule]:
    """List schedules of all orgs whose time has come, the longest due first."""
    due = _SELECT.where(schedules.c.next_at <= tx.now)
    return tx.all(due.order_by(schedules.c.next_at).limit(limit), Schedule)


def read_next(tx: Tx) -> datetime | None:
    """Return when the next schedule of any org is due."""
    row = tx.first(select(schedules.c.next_at).order_by(schedules.c.next_at).limit(1))
    return None if row is None else row.next_at


def claim_tick(tx: Tx, due: Schedule, next_at: datetime) -> bool:
    """Claim a due tick; return True at exactly one of the servers that see it."""
    same = (
        schedules.c.org_id == due.org,
        schedules.c.id == due.id,
        schedules.c.next_at == due.next_at,
    )
    values = {"next_at": next_at, "last_at": tx.now}
    return tx.run(update(schedules).where(*same).values(**values)).rowcount == 1


def claim_once(tx: Tx, org: OrgId, due: Schedule) -> bool:
    """Claim and remove what happens only once; return True at exactly one server."""
    same = (schedules.c.org_id == org, schedules.c.id == due.id)
    return tx.run(delete(schedules).where(*same, schedules.c.next_at == due.next_at)).rowcount == 1


def _update(tx: Tx, org: OrgId, schedule: str, **values: Any) -> None:
    mine = (schedules.c.org_id == org, schedules.c.id == schedule)
    tx.run(update(schedules).where(*mine).values(**values))
