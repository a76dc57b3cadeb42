"""Jobs."""

from exclave.api.credentials import DepsOf, UserOf
from exclave.api.idempotency import idempotent
from exclave.api.ids import JobOf
from exclave.api.queries import JobsOf
from exclave.api.routes import UserRoute, make_router
from exclave.control.workflows import jobs
from exclave.wire.jobs import DeclareLost, JobReply
from exclave.wire.model import Page

router = make_router("/v1/jobs", "jobs", UserRoute)


@router.get("")
async def list_jobs(query: JobsOf, user: UserOf, deps: DepsOf) -> Page[JobReply]:
    """List jobs, newest first."""
    return await jobs.list_jobs(
        deps,
        user,
        cursor=query.cursor,
        limit=query.limit,
        queue=query.queue_id,
        workflow=query.workflow_id,
        state=query.state,
    )


@router.get("/{job}")
async def show_job(job: JobOf, user: UserOf, deps: DepsOf) -> JobReply:
    """Show a job with its attempts."""
    return await jobs.show_job(deps, user, job)


@router.post("/{job}/cancel", status_code=202)
@idempotent()
async def cancel_job(job: JobOf, user: UserOf, deps: DepsOf) -> JobReply:
    """Cancel a job."""
    return await jobs.cancel_job(deps, user, job)


@router.post("/{job}/declare-lost")
@idempotent()
async def declare_lost(job: JobOf, body: DeclareLost, user: UserOf, deps: DepsOf) -> JobReply:
    """Declare the machine that ran the job as gone, instead of waiting for it."""
    return await jobs.declare_lost(deps, user, job, body.reason)
