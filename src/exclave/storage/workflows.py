"""Queries for workflows and their steps."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    bindparam,
    func,
    insert,
    select,
    update,
)

from exclave.domain.identity import OrgId, QueueId
from exclave.domain.workflows import (
    Step,
    StepKind,
    StepState,
    Workflow,
    WorkflowId,
    WorkflowState,
)
from exclave.storage.database import AnyRow, Tx
from exclave.storage.queues import lock_queue
from exclave.storage.tables import jobs, steps, workflows

Key = tuple[OrgId, WorkflowId]

_LIGHT = (
    steps.c.org_id, steps.c.workflow_id, steps.c.position, steps.c.name, steps.c.kind,
    steps.c.state, steps.c.needs, steps.c.lanes, steps.c.mutating, steps.c.digest, steps.c.attempt,
    steps.c.reason, steps.c.job_id,
)  # fmt: skip
"""What decisions need; specifications and outputs stay where they are."""

_AT = (
    steps.c.org_id == bindparam("at_org"),
    steps.c.workflow_id == bindparam("at_workflow"),
    steps.c.position == bindparam("at_index"),
)


@dataclass(frozen=True, slots=True)
class Loaded:
    """A workflow under lock, with what the value itself does not carry."""

    value: Workflow
    org: OrgId
    queue: QueueId
    job_ids: tuple[str | None, ...]


def add_workflow(tx: Tx, row: Mapping[str, Any], step_rows: Sequence[Mapping[str, Any]]) -> None:
    """Store a new workflow with its steps, all pending."""
    tx.run(insert(workflows).values(**row, created_at=tx.now, moved_at=tx.now))
    tx.run(insert(steps), step_rows)


def load_locked(tx: Tx, keys: Sequence[Key]) -> dict[Key, Loaded]:
    """Load workflows for a decision and lock them: their queues first, always in the same order."""
    wanted = frozenset(keys)
    _lock_queues(tx, wanted)
    order = (workflows.c.org_id, workflows.c.id)
    found = select(workflows).where(*_among(workflows.c.id, wanted)).order_by(*order)
    rows = [row for row in tx.all(found.with_for_update()) if (row.org_id, row.id) in wanted]
    by_workflow: dict[Key, list[AnyRow]] = {}
    light = select(*_LIGHT).where(*_among(steps.c.workflow_id, wanted))
    for row in tx.all(light.order_by(steps.c.org_id, steps.c.workflow_id, steps.c.position)):
        by_workflow.setdefault((row[0], row[1]), []).append(row)
    return {(row.org_id, row.id): _load(row, by_workflow[(row.org_id, row.id)]) for row in rows}


def _lock_queues(tx: Tx, wanted: Collection[Key]) -> None:
    """Lock the queues whose lanes are at stake, so that turns are taken one decision at a time."""
    laned = select(workflows.c.org_id, workflows.c.id, workflows.c.queue_id).where(
        *_among(workflows.c.id, wanted), workflows.c.laned
    )
    at_stake = {(r.org_id, r.queue_id) for r in tx.all(laned) if (r.org_id, r.id) in wanted}
    for org, queue in sorted(at_stake):
        lock_queue(tx, org, queue)


def _among(workflow: Column[Any], keys: Collection[Key]) -> tuple[ColumnElement[bool], ...]:
    """Narrow to these workflows by two lists; SQLite would scan the table for a list of pairs.

    The lists find a workflow also under the org of another; the caller drops what is not in `keys`.
    """
    orgs, ids = {org for org, _ in keys}, {workflow for _, workflow in keys}
    return (workflow.table.c.org_id.in_(sorted(orgs)), workflow.in_(sorted(ids)))


def begin_steps(tx: Tx, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write steps that became active: rows of at_*, digest, job, due."""
    _update_each(tx, rows, {"state": StepState.ACTIVE, "digest": bindparam("new_digest"),
                            "job_id": bindparam("new_job"), "due_at": bindparam("new_due"),
                            "started_at": tx.now, "finished_at": None})  # fmt: skip


def end_steps(tx: Tx, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write steps that are over: rows of at_*, state, digest, reason, message, outputs, by.

    Of the last three, None leaves alone what is there.
    """
    _update_each(tx, rows, {"state": bindparam("new_state"), "digest": bindparam("new_digest"),
                            "reason": bindparam("new_reason"), "due_at": None,
                            "message": _or_kept("new_message", steps.c.message),
                            "outputs": _or_kept("new_outputs", steps.c.outputs),
                            "answered_by": _or_kept("new_by", steps.c.answered_by),
                            "finished_at": tx.now})  # fmt: skip


def reset_steps(tx: Tx, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write steps that are to be done again: rows of at_*, attempt."""
    _update_each(tx, rows, {"state": StepState.PENDING, "attempt": bindparam("new_attempt"),
                            "digest": "", "reason": "", "message": "", "outputs": {},
                            "job_id": None, "answered_by": None, "due_at": None,
                            "started_at": None, "finished_at": None})  # fmt: skip


def save_workflows(tx: Tx, changed: Sequence[Loaded]) -> None:
    """Write the workflows' own rows and raise their revisions."""
    mine = (
        workflows.c.org_id == bindparam("at_org"),
        workflows.c.id == bindparam("at_workflow"),
    )
    statement = update(workflows).where(*mine).values(
        state=bindparam("new_state"), approve_all=bindparam("new_all"),
        cancel_requested=bindparam("new_cancel"), finished_at=bindparam("new_finished"),
        revision=workflows.c.revision + 1, moved_at=tx.now,
    )  # fmt: skip
    rows = [
        {
            "at_org": loaded.org, "at_workflow": loaded.value.id,
            "new_state": loaded.value.state, "new_all": loaded.value.approve_all,
            "new_cancel": loaded.value.cancel_requested,
            "new_finished": None if loaded.value.state is WorkflowState.RUNNING else tx.now,
        }
        for loaded in changed
    ]  # fmt: skip
    if rows:
        tx.run(statement, rows)


def load_specs(tx: Tx, key: Key, indexes: Sequence[int]) -> dict[int, Any]:
    """Load the specifications of some steps."""
    mine = (steps.c.org_id == key[0], steps.c.workflow_id == key[1])
    found = select(steps.c.position, steps.c.spec).where(*mine, steps.c.position.in_(indexes))
    return {row.position: row.spec for row in tx.all(found)}


def load_outputs(tx: Tx, key: Key, indexes: Sequence[int]) -> dict[str, Any]:
    """Load the outputs of some steps, by step name."""
    mine = (steps.c.org_id == key[0], steps.c.workflow_id == key[1])
    found = select(steps.c.name, steps.c.outputs).where(*mine, steps.c.position.in_(indexes))
    return {row.name: row.outputs for row in tx.all(found)}


def find_workflow(tx: Tx, org: OrgId, workflow: WorkflowId) -> AnyRow | None:
    """Find a workflow of this org."""
    return tx.first(select(workflows).where(workflows.c.org_id == org, workflows.c.id == workflow))


def list_steps(tx: Tx, org: OrgId, workflow: WorkflowId) -> Sequence[AnyRow]:
    """List all of a workflow's steps with the states of their jobs."""
    joined = steps.outerjoin(
        jobs, (jobs.c.org_id == steps.c.org_id) & (jobs.c.id == steps.c.job_id)
    )
    where = (steps.c.org_id == org, steps.c.workflow_id == workflow)
    found = select(steps, jobs.c.state.label("job_state")).select_from(joined).where(*where)
    return tx.all(found.order_by(steps.c.position))


def list_workflows(
    tx: Tx, org: OrgId, *, before: str, limit: int, queue: str | None, state: str | None
) -> Sequence[AnyRow]:
    """List workflows, newest first."""
    where = [workflows.c.org_id == org]
    if before:
        where.append(workflows.c.id < before)
    if queue is not None:
        where.append(workflows.c.queue_id == queue)
    if state is not None:
        where.append(workflows.c.state == state)
    return tx.all(select(workflows).where(*where).order_by(workflows.c.id.desc()).limit(limit))


def list_due(tx: Tx, limit: int) -> Sequence[AnyRow]:
    """List timers and gates of all orgs whose time has come."""
    where = (steps.c.state == StepState.ACTIVE, steps.c.due_at <= tx.now)
    return tx.all(select(*_LIGHT).where(*where).order_by(steps.c.due_at).limit(limit))


def next_due(tx: Tx) -> datetime | None:
    """Tell when the next timer or gate of any org comes due."""
    where = (steps.c.state == StepState.ACTIVE, steps.c.due_at.is_not(None))
    row = tx.first(select(steps.c.due_at).where(*where).order_by(steps.c.due_at).limit(1))
    return None if row is None else row.due_at


def list_unmoved(tx: Tx, before: datetime, limit: int) -> Sequence[Key]:
    """List running workflows of all orgs that nothing happened to since then."""
    where = (workflows.c.state == WorkflowState.RUNNING, workflows.c.moved_at < before)
    found = select(workflows.c.org_id, workflows.c.id).where(*where)
    return [(row.org_id, row.id) for row in tx.all(found.limit(limit))]


def _update_each(tx: Tx, rows: Sequence[Mapping[str, Any]], values: Mapping[str, Any]) -> None:
    if rows:
        tx.run(update(steps).where(*_AT).values(values), rows)


def _or_kept(name: str, column: Column[Any]) -> ColumnElement[Any]:
    return func.coalesce(bindparam(name, type_=column.type), column)


def _load(row: AnyRow, step_rows: Sequence[AnyRow]) -> Loaded:
    value = Workflow(
        id=row.id, state=WorkflowState(row.state), steps=tuple(_read_step(s) for s in step_rows),
        approve_all=row.approve_all, plan_only=row.plan_only,
        cancel_requested=row.cancel_requested,
    )  # fmt: skip
    return Loaded(value, row.org_id, row.queue_id, tuple(s[12] for s in step_rows))


def _read_step(row: AnyRow) -> Step:
    _, _, index, name, kind, state, needs, lanes, mutating, digest, attempt, reason, _ = row
    return Step(
        index, name, StepKind(kind), StepState(state),
        tuple(map(int, needs.split(","))) if needs else (),
        tuple(lanes.split(",")) if lanes else (),
        mutating, digest, attempt, reason,
    )  # fmt: skip
