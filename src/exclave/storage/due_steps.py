"""Queries for timers that are to ring and gates that are to expire."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Integer, bindparam, select, update

from exclave.domain.identity import OrgId
from exclave.domain.workflows import StepKind, StepState, WorkflowId, WorkflowKey
from exclave.storage.engine.database import Tx
from exclave.storage.engine.statements import Prepared
from exclave.storage.tables.work import steps


class DueStep(NamedTuple):
    """A timer that is to ring, or a gate that is to expire."""

    org_id: OrgId
    workflow_id: WorkflowId
    position: int
    kind: StepKind
    digest: str
    attempt: int


class _DueAt(NamedTuple):
    due_at: datetime


_DUE = Prepared(
    select(*(steps.c[name] for name in DueStep._fields))
    .where(steps.c.state == StepState.ACTIVE, steps.c.due_at <= bindparam("now"))
    .order_by(steps.c.due_at)
    .limit(bindparam("most", type_=Integer)),
    DueStep,
)
_NEXT_DUE = Prepared(
    select(steps.c.due_at)
    .where(steps.c.state == StepState.ACTIVE, steps.c.due_at.is_not(None))
    .order_by(steps.c.due_at)
    .limit(1),
    _DueAt,
)


def list_due(tx: Tx, limit: int) -> Sequence[DueStep]:
    """List timers and gates of all orgs whose time has come."""
    return tx.all(_DUE, now=tx.now, most=limit)


_PUT_OFF = Prepared(
    update(steps)
    .where(steps.c.org_id == bindparam("org"), steps.c.workflow_id == bindparam("workflow"))
    .where(steps.c.position == bindparam("at_position"), steps.c.state == StepState.ACTIVE)
    .where(steps.c.due_at <= bindparam("now"))
    .values(due_at=bindparam("later"))
)


def put_off(tx: Tx, key: WorkflowKey, position: int, later: datetime) -> None:
    """Postpone a timer or gate that is due."""
    at = {"org": key[0], "workflow": key[1], "at_position": position}
    tx.count(_PUT_OFF, **at, now=tx.now, later=later)


def next_due(tx: Tx) -> datetime | None:
    """Return when the next timer or gate of any org is due."""
    row = tx.first(_NEXT_DUE)
    return None if row is None else row.due_at
