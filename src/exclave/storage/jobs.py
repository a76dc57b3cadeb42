"""Queries for jobs: enqueue, pick, move to a final state."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import func, insert, select, update

from exclave.domain.identity import OrgId, QueueId
from exclave.domain.jobs import JobId, JobState
from exclave.storage.database import AnyRow, Tx
from exclave.storage.tables import jobs

_OPEN = (JobState.QUEUED, JobState.OFFERED, JobState.RUNNING)


def add_jobs(tx: Tx, rows: Sequence[Mapping[str, Any]]) -> None:
    """Enqueue jobs."""
    fixed = {"state": JobState.QUEUED, "attempts": 0, "message": "", "outputs": {}}
    tx.run(insert(jobs), [{**fixed, "created_at": tx.now, **row} for row in rows])


def find_job(tx: Tx, org: OrgId, job: JobId, *, lock: bool = False) -> AnyRow | None:
    """Find a job of this org."""
    found = select(jobs).where(jobs.c.org_id == org, jobs.c.id == job)
    return tx.first(found.with_for_update() if lock else found)


def list_queued(
    tx: Tx, org: OrgId, queue: QueueId, kinds: Sequence[str], *, skip: int, limit: int
) -> Sequence[AnyRow]:
    """List jobs that wait for a runner: by priority, then oldest first."""
    where = (
        jobs.c.org_id == org,
        jobs.c.queue_id == queue,
        jobs.c.state == JobState.QUEUED,
        jobs.c.kind.in_(kinds),
    )
    order = (jobs.c.priority.desc(), jobs.c.id)
    return tx.all(select(jobs).where(*where).order_by(*order).offset(skip).limit(limit))


def set_state(tx: Tx, org: OrgId, job: JobId, state: JobState, *, tried: bool = False) -> bool:
    """Move a job that has not ended between its open states; tell whether it was still open."""
    values: dict[str, Any] = {"state": state}
    if tried:
        values["attempts"] = jobs.c.attempts + 1
    mine = (jobs.c.org_id == org, jobs.c.id == job, jobs.c.state.in_(_OPEN))
    return tx.run(update(jobs).where(*mine).values(values)).rowcount == 1


def end_job(
    tx: Tx, org: OrgId, job: JobId, state: JobState, *, reason: str, message: str = "",
    exit_code: int | None = None, outputs: Mapping[str, Any] | None = None,
) -> bool:  # fmt: skip
    """Move a job to its final state; tell whether this call did it. A final state never changes."""
    mine = (jobs.c.org_id == org, jobs.c.id == job, jobs.c.state.in_(_OPEN))
    ended = update(jobs).where(*mine).values(
        state=state, reason=reason, message=message, exit_code=exit_code,
        outputs=dict(outputs or {}), finished_at=tx.now,
    )  # fmt: skip
    return tx.run(ended).rowcount == 1


def request_cancel(tx: Tx, org: OrgId, job: JobId) -> None:
    """Note durably that a job is to stop; the first wish counts."""
    mine = (jobs.c.org_id == org, jobs.c.id == job, jobs.c.state.in_(_OPEN))
    wish = update(jobs).where(*mine, jobs.c.cancel_requested_at.is_(None))
    tx.run(wish.values(cancel_requested_at=tx.now))


def list_jobs(
    tx: Tx, org: OrgId, *, before: str, limit: int, queue: str | None, workflow: str | None,
    state: str | None,
) -> Sequence[AnyRow]:  # fmt: skip
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
    return tx.all(select(jobs).where(*where).order_by(jobs.c.id.desc()).limit(limit))


def count_by_state(tx: Tx) -> dict[str, int]:
    """Count the jobs of the whole instance that have not ended, for metrics."""
    counted = select(jobs.c.state, func.count()).where(jobs.c.state.in_(_OPEN))
    return {row[0]: row[1] for row in tx.all(counted.group_by(jobs.c.state))}
