"""Writes of steps that begin, end or are retried: one statement for all of a kind."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from exclave.base.json_values import JsonObject
from exclave.domain.identity import OrgId
from exclave.domain.jobs import JobId
from exclave.domain.workflows import StepState, WorkflowId, WorkflowKey
from exclave.storage.engine.database import Tx
from exclave.storage.engine.dialects.bulk import Rows
from exclave.storage.tables.work import steps


class BegunStep(NamedTuple):
    """A step that becomes active."""

    org_id: OrgId
    workflow_id: WorkflowId
    position: int
    digest: str
    job_id: JobId | None
    due_at: datetime | None


class EndedStep(NamedTuple):
    """A step that ended; the last three columns stay as they are for None."""

    org_id: OrgId
    workflow_id: WorkflowId
    position: int
    state: StepState
    digest: str
    reason: str
    message: str | None
    outputs: JsonObject | None
    answered_by: str | None


class ResetStep(NamedTuple):
    """A step that is retried."""

    org_id: OrgId
    workflow_id: WorkflowId
    position: int
    attempt: int


def begin_steps(tx: Tx, new: Sequence[BegunStep]) -> None:
    """Update steps that became active."""
    began = {"state": StepState.ACTIVE, "started_at": tx.now, "finished_at": None, "message": ""}
    _update(tx, new, began)


def note_wait(tx: Tx, key: WorkflowKey, position: int, message: str) -> None:
    """Store what a pending step waits for; the message of its end takes its place."""
    row = {"org_id": key[0], "workflow_id": key[1], "position": position, "message": message}
    tx.update_each(steps, [row])


def end_steps(tx: Tx, new: Sequence[EndedStep]) -> None:
    """Update steps that ended."""
    answer = ("message", "outputs", "answered_by")
    _update(tx, new, {"due_at": None, "finished_at": tx.now}, keep_if_none=answer)


def reset_steps(tx: Tx, new: Sequence[ResetStep]) -> None:
    """Reset steps to pending for a retry."""
    fixed: dict[str, object] = {
        "state": StepState.PENDING,
        "digest": "",
        "reason": "",
        "message": "",
        "outputs": {},
        "job_id": None,
        "answered_by": None,
        "due_at": None,
        "started_at": None,
        "finished_at": None,
    }
    _update(tx, new, fixed)


def _update(
    tx: Tx,
    new: Sequence[BegunStep | EndedStep | ResetStep],
    fixed: dict[str, object],
    keep_if_none: tuple[str, ...] = (),
) -> None:
    rows: Rows = [{**step._asdict(), **fixed} for step in new]
    tx.update_each(steps, rows, keep_if_none=keep_if_none)
