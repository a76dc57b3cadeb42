"""Queries for workflows, which are loaded with their steps; other queries for steps: `steps.py`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import NamedTuple

from sqlalchemy import Integer, bindparam, select, update

from exclave.base.json_values import JsonObject
from exclave.domain.identity import OrgId, QueueId
from exclave.domain.jobs import JobId
from exclave.domain.workflow_records import StepRecord, WorkflowRecord
from exclave.domain.workflows import (
    NewWorkflow,
    Step,
    Workflow,
    WorkflowId,
    WorkflowKey,
    WorkflowState,
)
from exclave.storage import steps
from exclave.storage.engine.database import Tx
from exclave.storage.engine.statements import Prepared
from exclave.storage.queues import lock_queue
from exclave.storage.steps import LightStep
from exclave.storage.tables.work import queues, workflows

_FIRST_REVISION = 1


class _OwnRow(NamedTuple):
    org_id: OrgId
    id: WorkflowId
    queue_id: QueueId
    state: WorkflowState
    approve_all: bool
    plan_only: bool
    cancel_requested: bool
    revision: int
    kind: str


@dataclass(frozen=True, slots=True)
class Loaded:
    """A locked workflow, with the columns that `Workflow` does not have."""

    value: Workflow
    org: OrgId
    queue: QueueId
    job_ids: tuple[JobId | None, ...]
    revision: int
    kind: str = ""
    """The `WorkflowKind` of an install's workflow; empty for any other."""
    specs: Mapping[int, JsonObject] = field(default_factory=dict)
    """The specifications of steps by position, as far as they are loaded."""


def add_workflow(tx: Tx, new: NewWorkflow) -> None:
    """Store a workflow with its steps, all pending."""
    add_workflows(tx, [new])


def add_workflows(tx: Tx, new: Sequence[NewWorkflow]) -> None:
    """Store workflows with their steps, all pending, in two inserts however many there are."""
    tx.insert_each(workflows, [_write_workflow(workflow, tx.now) for workflow in new])
    steps.add_steps(tx, new)


def _write_workflow(new: NewWorkflow, now: datetime) -> dict[str, object]:
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


_LOCK_QUEUES = Prepared(
    select(queues.c.id)
    .where(queues.c.org_id.in_(bindparam("orgs", expanding=True)))
    .where(
        queues.c.id.in_(
            select(workflows.c.queue_id).where(*steps.match_keys(workflows.c.id), workflows.c.laned)
        )
    )
    .order_by(queues.c.org_id, queues.c.id)
    .with_for_update()
)
_LOCK = Prepared(
    select(*(workflows.c[name] for name in _OwnRow._fields))
    .where(*steps.match_keys(workflows.c.id))
    .order_by(workflows.c.org_id, workflows.c.id)
    .with_for_update(),
    _OwnRow,
)


def load_locked(tx: Tx, keys: Sequence[WorkflowKey]) -> dict[WorkflowKey, Loaded]:
    """Lock workflows and load them with their steps: queues first, always in the same order.

    The steps of a workflow that is cached in the revision of its locked row are not read again.
    """
    wanted = dict.fromkeys(keys)
    lists = steps.list_keys(wanted)
    tx.execute_later(_LOCK_QUEUES, **lists)
    locked = tx.select_later(_LOCK, **lists)
    # Sent before the lock is granted: the steps of what is not cached share its exchange.
    read_steps = steps.ask_steps(tx, [key for key in wanted if not tx.cache.peek(key)])
    rows = {key: row for row in locked() if (key := (row.org_id, row.id)) in wanted}
    cached: dict[WorkflowKey, Loaded] = {}
    for key, row in rows.items():
        value: Loaded | None = tx.cache.get(key, row.revision)
        if value is not None:
            cached[key] = value
    read = read_steps()
    read |= steps.ask_steps(tx, [key for key in rows if key not in read and key not in cached])()
    return {key: cached.get(key) or _load(row, read[key]) for key, row in rows.items()}


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


_RECORD = select(*(workflows.c[name] for name in WorkflowRecord._fields))
_FIND = Prepared(
    _RECORD.where(workflows.c.org_id == bindparam("org"), workflows.c.id == bindparam("workflow")),
    WorkflowRecord,
)


def find_workflow(tx: Tx, org: OrgId, workflow: WorkflowId) -> WorkflowRecord | None:
    """Find a workflow of this org."""
    return tx.first(_FIND, org=org, workflow=workflow)


def find_with_steps(
    tx: Tx, org: OrgId, workflow: WorkflowId
) -> tuple[WorkflowRecord | None, Sequence[StepRecord]]:
    """Find a workflow and all its steps."""
    workflow_of = tx.select_later(_FIND, org=org, workflow=workflow)
    steps_of = steps.ask_step_records(tx, org, workflow)
    return next(iter(workflow_of()), None), steps_of()


def list_workflows(
    tx: Tx, org: OrgId, *, before: str, limit: int, queue: str | None, state: str | None
) -> Sequence[WorkflowRecord]:
    """List workflows, newest first."""
    where = [workflows.c.org_id == org]
    if before:
        where.append(workflows.c.id < before)
    if queue is not None:
        where.append(workflows.c.queue_id == queue)
    if state is not None:
        where.append(workflows.c.state == state)
    newest = _RECORD.where(*where).order_by(workflows.c.id.desc()).limit(limit)
    return tx.all(newest, WorkflowRecord)


def forget_sealed(tx: Tx, org: OrgId, queue: QueueId) -> None:
    """Delete the sensitive values that workflows of a queue were given."""
    mine = (workflows.c.org_id == org, workflows.c.queue_id == queue)
    tx.run(update(workflows).where(*mine).values(sealed=None))


class _OwnKey(NamedTuple):
    org_id: OrgId
    id: WorkflowId


_UNMOVED = Prepared(
    select(workflows.c.org_id, workflows.c.id)
    .where(workflows.c.state == WorkflowState.RUNNING, workflows.c.moved_at < bindparam("before"))
    .order_by(workflows.c.moved_at)
    .limit(bindparam("most", type_=Integer)),
    _OwnKey,
)


def list_unmoved(tx: Tx, before: datetime, limit: int) -> Sequence[WorkflowKey]:
    """List running workflows of all orgs that were not checked since then, the oldest first."""
    return [(row.org_id, row.id) for row in tx.all(_UNMOVED, before=before, most=limit)]


def note_looked(tx: Tx, keys: Sequence[WorkflowKey]) -> None:
    """Store that workflows were checked, so that the next check begins with others."""
    tx.update_each(workflows, [{"org_id": o, "id": w, "moved_at": tx.now} for o, w in keys])


def _load(own: _OwnRow, light: Sequence[LightStep]) -> Loaded:
    value = Workflow(
        id=own.id,
        state=own.state,
        steps=tuple(step.as_step() for step in light),
        approve_all=own.approve_all,
        plan_only=own.plan_only,
        cancel_requested=own.cancel_requested,
    )
    job_ids = tuple(step.job_id for step in light)
    return Loaded(value, own.org_id, own.queue_id, job_ids, own.revision, own.kind)
