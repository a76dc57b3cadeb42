"""Queries for workflows and their steps."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    Integer,
    Text,
    bindparam,
    cast,
    func,
    select,
    update,
)

from exclave.domain.identity import OrgId, QueueId
from exclave.domain.workflows import (
    NewStep,
    NewWorkflow,
    Step,
    StepKind,
    StepState,
    Workflow,
    WorkflowId,
    WorkflowState,
)
from exclave.storage.engine.database import AnyRow, Tx
from exclave.storage.engine.dialects.bulk import Rows
from exclave.storage.engine.statements import Prepared
from exclave.storage.queues import lock_queue
from exclave.storage.tables.core import jobs, queues, steps, workflows

Key = tuple[OrgId, WorkflowId]

_FIRST_REVISION = 1

_LIGHT = (
    steps.c.org_id, steps.c.workflow_id, steps.c.position, steps.c.name, steps.c.kind,
    steps.c.state, steps.c.needs, steps.c.lanes, steps.c.mutating, steps.c.digest, steps.c.attempt,
    steps.c.reason, steps.c.job_id,
)  # fmt: skip
"""The columns that decisions need: specifications and outputs are not loaded."""

_OWN = (
    workflows.c.org_id, workflows.c.id, workflows.c.queue_id, workflows.c.state,
    workflows.c.approve_all, workflows.c.plan_only, workflows.c.cancel_requested,
    workflows.c.revision, workflows.c.kind,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Loaded:
    """A locked workflow, with the columns that `Workflow` does not have."""

    value: Workflow
    org: OrgId
    queue: QueueId
    job_ids: tuple[str | None, ...]
    revision: int
    kind: str = ""
    """The `WorkflowKind` of an install's workflow; empty for any other."""
    specs: Mapping[int, Any] = field(default_factory=dict)
    """The specifications of steps by position, as far as they are loaded."""


def add_workflow(tx: Tx, new: NewWorkflow) -> None:
    """Store a workflow with its steps, all pending."""
    add_workflows(tx, [new])


def add_workflows(tx: Tx, new: Sequence[NewWorkflow]) -> None:
    """Store workflows with their steps, all pending, in two inserts however many there are."""
    tx.insert_each(workflows, [_write_workflow(workflow, tx.now) for workflow in new])
    tx.insert_each(
        steps,
        [
            _write_step(workflow, position, step)
            for workflow in new
            for position, step in enumerate(workflow.steps)
        ],
    )


def _write_workflow(new: NewWorkflow, now: datetime) -> dict[str, Any]:
    return {
        "org_id": new.org,
        "id": new.id,
        "queue_id": new.queue,
        "name": new.name,
        "kind": new.kind or "",
        "state": WorkflowState.RUNNING,
        "approve_all": new.approve_all,
        "plan_only": new.plan_only,
        "cancel_requested": False,
        "laned": new.is_laned,
        "revision": _FIRST_REVISION,
        "labels": dict(new.labels),
        "created_at": now,
        "created_by": new.author.name,
        "by_person": new.author.person,
        "by_token": new.author.token,
        "moved_at": now,
        "sealed": dict(new.sealed) if new.sealed else None,
    }


def _write_step(new: NewWorkflow, position: int, step: NewStep) -> dict[str, Any]:
    return {
        "org_id": new.org,
        "workflow_id": new.id,
        "position": position,
        "name": step.name,
        "kind": step.kind,
        "state": StepState.PENDING,
        "needs": step.needs,
        "lanes": step.lanes,
        "mutating": step.mutating,
        "spec": step.spec,
        "outputs": {},
    }


def _among(workflow: Column[Any]) -> tuple[ColumnElement[bool], ...]:
    """Return the condition for some workflows as two lists: SQLite would scan for a list of pairs.

    The lists also match a workflow id in the org of another; the caller drops such rows.
    """
    org = workflow.table.c.org_id.in_(bindparam("orgs", expanding=True))
    return (org, workflow.in_(bindparam("workflows", expanding=True)))


_LOCK_QUEUES = Prepared(
    select(queues.c.id)
    .where(queues.c.org_id.in_(bindparam("orgs", expanding=True)))
    .where(
        queues.c.id.in_(
            select(workflows.c.queue_id).where(*_among(workflows.c.id), workflows.c.laned)
        )
    )
    .order_by(queues.c.org_id, queues.c.id)
    .with_for_update()
)
_LOCK = Prepared(
    select(*_OWN)
    .where(*_among(workflows.c.id))
    .order_by(workflows.c.org_id, workflows.c.id)
    .with_for_update()
)
_STEPS_OF = Prepared(
    select(*_LIGHT)
    .where(*_among(steps.c.workflow_id))
    .order_by(steps.c.org_id, steps.c.workflow_id, steps.c.position)
)


def load_locked(tx: Tx, keys: Sequence[Key]) -> dict[Key, Loaded]:
    """Lock workflows and load them with their steps: queues first, always in the same order.

    The steps of a workflow that is cached in the revision of its locked row are not read again.
    """
    wanted = dict.fromkeys(keys)
    lists = _list_keys(wanted)
    tx.execute_later(_LOCK_QUEUES, **lists)
    locked = tx.select_later(_LOCK, **lists)
    # Sent before the lock is granted: the steps of what is not cached share its exchange.
    read_steps = _ask_steps(tx, [key for key in wanted if not tx.cache.peek(key)])
    rows = {key: row for row in locked() if (key := (row.org_id, row.id)) in wanted}
    cached: dict[Key, Loaded] = {}
    for key, row in rows.items():
        value: Loaded | None = tx.cache.get(key, row.revision)
        if value is not None:
            cached[key] = value
    read = read_steps()
    read |= _ask_steps(tx, [key for key in rows if key not in read and key not in cached])()
    return {key: cached.get(key) or _load(row, read[key]) for key, row in rows.items()}


def _list_keys(keys: Iterable[Key]) -> dict[str, list[str]]:
    return {"orgs": sorted({k[0] for k in keys}), "workflows": sorted({k[1] for k in keys})}


def _ask_steps(tx: Tx, keys: Sequence[Key]) -> Callable[[], dict[Key, list[AnyRow]]]:
    if not keys:
        return dict
    asked = tx.select_later(_STEPS_OF, **_list_keys(keys))

    def read() -> dict[Key, list[AnyRow]]:
        found: dict[Key, list[AnyRow]] = {}
        for row in asked():
            found.setdefault((row[0], row[1]), []).append(row)
        return found

    return read


def lock_new(tx: Tx, new: NewWorkflow) -> Loaded:
    """Return what `load_locked` would for a workflow that this transaction has just stored."""
    if new.is_laned:
        lock_queue(tx, new.org, new.queue)
    pending = tuple(
        Step(
            position,
            step.name,
            step.kind,
            needs=step.needs,
            lanes=step.lanes,
            mutating=step.mutating,
        )
        for position, step in enumerate(new.steps)
    )
    value = Workflow(
        id=new.id,
        state=WorkflowState.RUNNING,
        steps=pending,
        approve_all=new.approve_all,
        plan_only=new.plan_only,
    )
    return Loaded(
        value,
        new.org,
        new.queue,
        (None,) * len(pending),
        _FIRST_REVISION,
        new.kind or "",
        {position: step.spec for position, step in enumerate(new.steps)},
    )


def begin_steps(tx: Tx, rows: Rows) -> None:
    """Update steps that became active; the rows have the key, digest, job_id and due_at."""
    fixed = {"state": StepState.ACTIVE, "started_at": tx.now, "finished_at": None}
    tx.update_each(steps, [{**row, **fixed} for row in rows])


def end_steps(tx: Tx, rows: Rows) -> None:
    """Update steps that ended; the rows have the key, state, digest, reason and an answer.

    The answer is message, outputs and answered_by; a column of it stays as it is for None.
    """
    fixed = {"due_at": None, "finished_at": tx.now}
    answer = ("message", "outputs", "answered_by")
    tx.update_each(steps, [{**row, **fixed} for row in rows], keep_if_none=answer)


def reset_steps(tx: Tx, rows: Rows) -> None:
    """Reset steps to pending for a retry; the rows have the key and attempt."""
    fixed: dict[str, Any] = {
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
    tx.update_each(steps, [{**row, **fixed} for row in rows])


def save_workflows(tx: Tx, changed: Sequence[Loaded]) -> None:
    """Update the rows of workflows and raise their revisions; steps are written separately."""
    tx.update_each(
        workflows,
        [
            {
                "org_id": loaded.org,
                "id": loaded.value.id,
                "state": loaded.value.state,
                "approve_all": loaded.value.approve_all,
                "cancel_requested": loaded.value.cancel_requested,
                "revision": loaded.revision + 1,
                "moved_at": tx.now,
                "finished_at": None if loaded.value.state is WorkflowState.RUNNING else tx.now,
            }
            for loaded in changed
        ],
    )
    for loaded in changed:
        if loaded.value.state is WorkflowState.RUNNING:
            now = replace(loaded, revision=loaded.revision + 1, specs={})
            tx.when_committed(partial(tx.cache.put, (loaded.org, loaded.value.id), now))


_SPECS = Prepared(select(steps.c.position, steps.c.name, steps.c.spec, steps.c.outputs).where(
    steps.c.org_id == bindparam("org"), steps.c.workflow_id == bindparam("workflow"),
    steps.c.position.in_(bindparam("indexes", expanding=True)),
))  # fmt: skip


def load_specs(tx: Tx, key: Key, indexes: Sequence[int]) -> dict[int, Any]:
    """Load the specifications of some steps."""
    found = tx.all(_SPECS, org=key[0], workflow=key[1], indexes=list(indexes))
    return {row.position: row.spec for row in found}


def load_outputs(tx: Tx, key: Key, indexes: Sequence[int]) -> dict[str, Any]:
    """Load the outputs of some steps, by step name."""
    found = tx.all(_SPECS, org=key[0], workflow=key[1], indexes=list(indexes))
    return {row.name: row.outputs for row in found}


_SIZES = Prepared(
    select(
        func.sum(func.length(cast(steps.c.outputs, Text)), type_=Integer).label("size")
    ).where(
        steps.c.org_id == bindparam("org"), steps.c.workflow_id == bindparam("workflow"),
        steps.c.position.in_(bindparam("indexes", expanding=True)),
    )
)  # fmt: skip


def measure_outputs(tx: Tx, key: Key, indexes: Sequence[int]) -> int:
    """Return the number of characters of the outputs of some steps together."""
    row = tx.first(_SIZES, org=key[0], workflow=key[1], indexes=list(indexes))
    return 0 if row is None or row.size is None else int(row.size)


def set_spec(tx: Tx, key: Key, index: int, spec: Mapping[str, Any]) -> None:
    """Replace the specification of a step, for its next attempt."""
    at = {"org_id": key[0], "workflow_id": key[1], "position": index}
    tx.update_each(steps, [{**at, "spec": dict(spec)}])


_FIND = Prepared(
    select(workflows).where(
        workflows.c.org_id == bindparam("org"), workflows.c.id == bindparam("workflow")
    )
)
_STEPS = Prepared(
    select(steps, jobs.c.state.label("job_state"), jobs.c.kind.label("job_kind"))
    .outerjoin(jobs, (jobs.c.org_id == steps.c.org_id) & (jobs.c.id == steps.c.job_id))
    .where(steps.c.org_id == bindparam("org"), steps.c.workflow_id == bindparam("workflow"))
    .order_by(steps.c.position)
)


def find_workflow(tx: Tx, org: OrgId, workflow: WorkflowId) -> AnyRow | None:
    """Find a workflow of this org."""
    return tx.first(_FIND, org=org, workflow=workflow)


def list_steps(tx: Tx, org: OrgId, workflow: WorkflowId) -> Sequence[AnyRow]:
    """List all of a workflow's steps with the states of their jobs."""
    return tx.all(_STEPS, org=org, workflow=workflow)


def find_with_steps(
    tx: Tx, org: OrgId, workflow: WorkflowId
) -> tuple[AnyRow | None, Sequence[AnyRow]]:
    """Find a workflow and all its steps."""
    found = tx.select_later(_FIND, org=org, workflow=workflow)
    steps_of = tx.select_later(_STEPS, org=org, workflow=workflow)
    return next(iter(found()), None), steps_of()


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


def forget_sealed(tx: Tx, org: OrgId, queue: QueueId) -> None:
    """Delete the sensitive values that workflows of a queue were given."""
    mine = (workflows.c.org_id == org, workflows.c.queue_id == queue)
    tx.run(update(workflows).where(*mine).values(sealed=None))


_MOST = bindparam("most", type_=Integer)
_DUE = Prepared(
    select(*_LIGHT)
    .where(steps.c.state == StepState.ACTIVE, steps.c.due_at <= bindparam("now"))
    .order_by(steps.c.due_at)
    .limit(_MOST)
)
_NEXT_DUE = Prepared(
    select(steps.c.due_at)
    .where(steps.c.state == StepState.ACTIVE, steps.c.due_at.is_not(None))
    .order_by(steps.c.due_at)
    .limit(1)
)
_UNMOVED = Prepared(
    select(workflows.c.org_id, workflows.c.id)
    .where(workflows.c.state == WorkflowState.RUNNING, workflows.c.moved_at < bindparam("before"))
    .order_by(workflows.c.moved_at)
    .limit(_MOST)
)


def list_due(tx: Tx, limit: int) -> Sequence[AnyRow]:
    """List timers and gates of all orgs whose time has come."""
    return tx.all(_DUE, now=tx.now, most=limit)


_PUT_OFF = Prepared(
    update(steps)
    .where(steps.c.org_id == bindparam("org"), steps.c.workflow_id == bindparam("workflow"))
    .where(steps.c.position == bindparam("at_position"), steps.c.state == StepState.ACTIVE)
    .where(steps.c.due_at <= bindparam("now"))
    .values(due_at=bindparam("later"))
)


def put_off(tx: Tx, key: Key, position: int, later: datetime) -> None:
    """Postpone a timer or gate that is due."""
    at = {"org": key[0], "workflow": key[1], "at_position": position}
    tx.count(_PUT_OFF, **at, now=tx.now, later=later)


def next_due(tx: Tx) -> datetime | None:
    """Return when the next timer or gate of any org is due."""
    row = tx.first(_NEXT_DUE)
    return None if row is None else row.due_at


def list_unmoved(tx: Tx, before: datetime, limit: int) -> Sequence[Key]:
    """List running workflows of all orgs that were not checked since then, the oldest first."""
    return [(row.org_id, row.id) for row in tx.all(_UNMOVED, before=before, most=limit)]


def note_looked(tx: Tx, keys: Sequence[Key]) -> None:
    """Store that workflows were checked, so that the next check begins with others."""
    tx.update_each(workflows, [{"org_id": o, "id": w, "moved_at": tx.now} for o, w in keys])


def _load(row: AnyRow, step_rows: Sequence[AnyRow]) -> Loaded:
    value = Workflow(
        id=row.id,
        state=WorkflowState(row.state),
        steps=tuple(_read_step(s) for s in step_rows),
        approve_all=row.approve_all,
        plan_only=row.plan_only,
        cancel_requested=row.cancel_requested,
    )
    job_ids = tuple(s[12] for s in step_rows)
    return Loaded(value, row.org_id, row.queue_id, job_ids, row.revision, row.kind)


def _read_step(row: AnyRow) -> Step:
    _, _, index, name, kind, state, needs, lanes, mutating, digest, attempt, reason, _ = row
    return Step(
        index,
        name,
        _KINDS[kind],
        _STATES[state],
        needs,
        lanes,
        mutating,
        digest,
        attempt,
        reason,
    )


# The same few texts are read over and over: twenty rows for each event of a workflow.
_KINDS = {str(kind): kind for kind in StepKind}
_STATES = {str(state): state for state in StepState}
