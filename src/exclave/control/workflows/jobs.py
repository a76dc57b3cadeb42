"""Jobs in the Control API: list, show, cancel, declare lost."""

from exclave.base.errors import Conflict, NotFound
from exclave.control.access import require_on, require_there
from exclave.control.audit import record
from exclave.control.deps import Deps
from exclave.control.dispatch.completion import end_interrupted
from exclave.control.pagination import clamp, make_page
from exclave.control.progress.advance import advance
from exclave.control.progress.cancel_jobs import end_unstarted_build, end_unstarted_job
from exclave.control.workflows import replies
from exclave.control.workflows.blockers import find_job_blocker
from exclave.domain.identity import Right, User
from exclave.domain.jobs import Job, JobId, JobState, Reason
from exclave.storage import executions, jobs, queues
from exclave.storage.engine.database import Tx
from exclave.storage.executions import STARTED
from exclave.wire.jobs import JobReply
from exclave.wire.model import Page


async def list_jobs(
    deps: Deps,
    user: User,
    *,
    cursor: str,
    limit: int,
    queue: str | None,
    workflow: str | None,
    state: str | None,
) -> Page[JobReply]:
    """List jobs, newest first."""
    await require_there(deps, user, Right.READ, queue)
    wanted = clamp(limit)
    rows = await deps.db.read(
        lambda tx: jobs.list_jobs(
            tx,
            user.org,
            before=cursor,
            limit=wanted + 1,
            queue=queue,
            workflow=workflow,
            state=state,
        )
    )
    return make_page(rows, wanted, replies.show_job)


async def show_job(deps: Deps, user: User, job: JobId) -> JobReply:
    """Show a job with its attempts."""

    def show(tx: Tx) -> JobReply:
        row = find_job(tx, user, job, Right.READ)
        is_queued = row.state is JobState.QUEUED
        blocker = find_job_blocker(tx, deps, row) if is_queued else None
        return replies.show_job(row, executions.list_of_job(tx, user.org, job), blocker)

    return await deps.db.read(show)


async def cancel_job(deps: Deps, user: User, job: JobId) -> JobReply:
    """Request the cancellation of a job; a job that was not started ends at once."""

    def cancel(tx: Tx) -> None:
        row = find_job(tx, user, job, Right.OPERATE)
        if row.state.is_final and row.state is not JobState.CANCELLED:
            raise Conflict(f"the job has ended: it is {row.state}")
        queues.lock_queue(tx, user.org, row.queue_id)  # as those do who offer its jobs
        event = end_unstarted_job(tx, user.org, job)
        if event is not None:
            advance(tx, deps, [event, *end_unstarted_build(tx, user.org, job)])
        record(tx, deps, user.org, user.name, "job_cancel_requested", job)
        tx.wake(f"job:{job}")

    await deps.db.write(cancel)
    return await show_job(deps, user, job)


async def declare_lost(deps: Deps, user: User, job: JobId, reason: str) -> JobReply:
    """End a job as lost on the word of a user that its machine is gone, without waiting."""

    def declare(tx: Tx) -> None:
        row = find_job(tx, user, job, Right.OPERATE)
        execution = executions.find_open_of_job(tx, user.org, job)
        if row.state is not JobState.RUNNING or execution is None:
            raise Conflict(f"the job does not run: it is {row.state}")
        if not end_interrupted(tx, deps, execution, Reason.DECLARED_LOST, STARTED):
            raise Conflict("the job ended a moment ago", hint="Look at how it ended.")
        record(tx, deps, user.org, user.name, "job_declared_lost", job, reason=reason)

    await deps.db.write(declare)
    return await show_job(deps, user, job)


def find_job(tx: Tx, user: User, job: JobId, right: Right) -> Job:
    """Return a job on which the user has this right."""
    row = jobs.find_job(tx, user.org, job)
    if row is None:
        raise NotFound("there is no such job")
    require_on(tx, user, right, row.queue_id, noun="job")
    return row
