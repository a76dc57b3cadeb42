"""Queries for jobs: enqueue, pick, move to a final state."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Text, bindparam, cast, exists, func, select, update

from exclave.base.json_values import JsonObject
from exclave.domain.identity import OrgId, QueueId
from exclave.domain.jobs import EndedJob, Job, JobId, JobKind, JobState, NewJob, Reason
from exclave.domain.lanes import SANDBOX, LaneState
from exclave.domain.workflows import WorkflowId
from exclave.storage.engine.database import Tx
from exclave.storage.engine.statements import Deferred, Prepared
from exclave.storage.tables.work import jobs, lanes, workflows

_OPEN = (JobState.QUEUED, JobState.OFFERED, JobState.RUNNING)


def add_jobs(tx: Tx, new: Sequence[NewJob]) -> None:
    """Enqueue jobs."""
    fixed = {
        "state": JobState.QUEUED,
        "attempts": 0,
        "message": "",
        "outputs": {},
        "created_at": tx.now,
    }
    tx.insert_each(jobs, [{**fixed, **job._asdict()} for job in new])


_JOB = select(*(jobs.c[name] for name in Job._fields))
_MINE = (jobs.c.org_id == bindparam("org"), jobs.c.id == bindparam("job"))
_FIND = Prepared(_JOB.where(*_MINE), Job)
_LOCK = Prepared(_JOB.where(*_MINE).with_for_update(), Job)


def find_job(tx: Tx, org: OrgId, job: JobId, *, lock: bool = False) -> Job | None:
    """Find a job of this org."""
    return tx.first(_LOCK if lock else _FIND, org=org, job=job)


class AppliedPlan(NamedTuple):
    """A job that applied a plan, and the step that it belongs to."""

    workflow_id: WorkflowId
    step: int
    spec: JsonObject
    finished_at: datetime


def list_applied(
    tx: Tx, org: OrgId, queue: QueueId, step_name: str, *, limit: int
) -> Sequence[AppliedPlan]:
    """List the jobs of a queue that ended well and whose steps have this name, newest first."""
    return tx.all(
        select(jobs.c.workflow_id, jobs.c.step, jobs.c.spec, jobs.c.finished_at)
        .join(workflows, (workflows.c.org_id == org) & (workflows.c.id == jobs.c.workflow_id))
        .where(
            jobs.c.org_id == org,
            workflows.c.queue_id == queue,
            jobs.c.step_name == step_name,
            jobs.c.state == JobState.SUCCEEDED,
        )
        .order_by(jobs.c.id.desc())
        .limit(limit),
        AppliedPlan,
    )


class Queued(NamedTuple):
    """A job that waits for a runner, as far as an offer needs it."""

    id: JobId
    kind: JobKind
    mutating: bool
    lanes: Sequence[str]
    spec: JsonObject
    inputs: JsonObject
    approved_digest: str | None
    priority: int


_LANES_TEXT = cast(jobs.c.lanes, Text)
"""The JSON of a job's lanes: each name stands in quotes, and `_` is the only wildcard in any."""
_EXCLUDED = exists().where(
    lanes.c.org_id == jobs.c.org_id,
    lanes.c.queue_id == jobs.c.queue_id,
    lanes.c.state != LaneState.FREE,
    _LANES_TEXT.like('%"' + func.replace(lanes.c.name, "_", "/_") + '"%', escape="/")
    | _LANES_TEXT.like(f'%"{SANDBOX}"%')
    | (lanes.c.name == SANDBOX),
)
_QUEUED = Prepared(
    select(*(jobs.c[name] for name in Queued._fields))
    .where(jobs.c.org_id == bindparam("org"), jobs.c.queue_id == bindparam("queue"))
    .where(jobs.c.state == JobState.QUEUED)
    .where((_LANES_TEXT == "[]") | ~_EXCLUDED)
    .where(jobs.c.kind.in_(bindparam("kinds", expanding=True)))
    .order_by(jobs.c.priority.desc(), jobs.c.id)
    .offset(bindparam("skip"))
    .limit(bindparam("limit")),
    Queued,
)


class WaitingJob(NamedTuple):
    """The id of a job that waits for a runner."""

    id: JobId


_WAITING = Prepared(
    select(jobs.c.id)
    .where(jobs.c.org_id == bindparam("org"), jobs.c.queue_id == bindparam("queue"))
    .where(jobs.c.state == JobState.QUEUED)
    .limit(1),
    WaitingJob,
)


def ask_waiting(tx: Tx, org: OrgId, queue: QueueId) -> Deferred[WaitingJob]:
    """Ask whether any job waits for a runner: a look that takes no lock."""
    return tx.select_later(_WAITING, org=org, queue=queue)


def ask_queued(
    tx: Tx, org: OrgId, queue: QueueId, kinds: Sequence[str], *, skip: int, limit: int
) -> Deferred[Queued]:
    """Ask for jobs that wait for a runner, as far as an offer needs them: by priority, then age.

    Those that a lane keeps waiting are left out, however many there are: they hide nobody.
    """
    return tx.select_later(_QUEUED, org=org, queue=queue, kinds=list(kinds), skip=skip, limit=limit)


def list_unflushed(tx: Tx, org: OrgId, queue: QueueId, kinds: Sequence[str]) -> list[Queued]:
    """List such jobs that this transaction has yet to write."""
    return [
        Queued._make(row[name] for name in Queued._fields)
        for row in tx.list_unflushed(jobs)
        if (row["org_id"], row["queue_id"]) == (org, queue) and row["kind"] in kinds
    ]


class StartedJob(NamedTuple):
    """A job that has just been started: whose it is, and whether it is to stop."""

    id: JobId
    workflow_id: WorkflowId
    cancel_requested_at: datetime | None


_OFFER = Prepared(
    update(jobs).where(*_MINE, jobs.c.state == JobState.QUEUED).values(state=JobState.OFFERED)
)
_REQUEUE = Prepared(
    update(jobs)
    .where(*_MINE, jobs.c.state.in_((JobState.OFFERED, JobState.RUNNING)))
    .where(jobs.c.cancel_requested_at.is_(None))
    .values(state=JobState.QUEUED)
)
_RUN = Prepared(
    update(jobs)
    .where(*_MINE, jobs.c.state == JobState.OFFERED)
    .values(state=JobState.RUNNING, attempts=jobs.c.attempts + 1)
    .returning(jobs.c.id, jobs.c.workflow_id, jobs.c.cancel_requested_at),
    StartedJob,
)
_END = Prepared(
    update(jobs)
    .where(*_MINE, jobs.c.state.in_(_OPEN))
    .values(
        state=bindparam("new_state"),
        reason=bindparam("new_reason"),
        message=bindparam("new_message"),
        exit_code=bindparam("new_code"),
        outputs=bindparam("new_outputs"),
        finished_at=bindparam("now"),
    )
    .returning(*(jobs.c[name] for name in EndedJob._fields)),
    EndedJob,
)


def offer_job(tx: Tx, org: OrgId, job: JobId) -> None:
    """Mark a queued job as offered; the caller holds the queue's lock."""
    if not tx.patch_unflushed(jobs, {"org_id": org, "id": job, "state": JobState.OFFERED}):
        tx.execute_later(_OFFER, org=org, job=job)


def requeue_job(tx: Tx, org: OrgId, job: JobId) -> bool:
    """Queue a job again; return False if it has ended or is to be cancelled."""
    return tx.count(_REQUEUE, org=org, job=job) == 1


def run_job(tx: Tx, org: OrgId, job: JobId) -> StartedJob | None:
    """Mark an offered job as running; None if it is not offered any more."""
    return tx.first(_RUN, org=org, job=job)


def end_job(
    tx: Tx,
    org: OrgId,
    job: JobId,
    state: JobState,
    *,
    reason: Reason,
    message: str = "",
    exit_code: int | None = None,
    outputs: JsonObject | None = None,
) -> EndedJob | None:
    """Move a job to its final state, which never changes; None if it was final before."""
    ended = {
        "org": org,
        "job": job,
        "new_state": state,
        "new_reason": reason,
        "new_message": message,
        "new_code": exit_code,
        "new_outputs": dict(outputs or {}),
        "now": tx.now,
    }
    return tx.first(_END, **ended)


def request_cancel(tx: Tx, org: OrgId, job: JobId) -> None:
    """Store that a job is to stop; a second request changes nothing."""
    mine = (jobs.c.org_id == org, jobs.c.id == job, jobs.c.state.in_(_OPEN))
    request = update(jobs).where(*mine, jobs.c.cancel_requested_at.is_(None))
    tx.run(request.values(cancel_requested_at=tx.now))


def list_jobs(
    tx: Tx,
    org: OrgId,
    *,
    before: str,
    limit: int,
    queue: str | None,
    workflow: str | None,
    state: str | None,
) -> Sequence[Job]:
    """List jobs, newest first."""
    where = [jobs.c.org_id == org]
    if before:
        where.append(jobs.c.id < before)
    if queue is not None:
        where.append(jobs.c.queue_id == queue)
    if workflow is not None:
        where.append(jobs.c.workflow_id == workflow)
    if state is not None:
        where.append(jobs.c.state == state)
    return tx.all(_JOB.where(*where).order_by(jobs.c.id.desc()).limit(limit), Job)


def count_by_state(tx: Tx) -> dict[str, int]:
    """Count the jobs of the whole instance that have not ended, for metrics."""
    counted = select(jobs.c.state, func.count().label("total")).where(jobs.c.state.in_(_OPEN))
    rows = tx.all(counted.group_by(jobs.c.state), _StateCount)
    return {row.state: row.total for row in rows}


class _StateCount(NamedTuple):
    state: JobState
    total: int
