"""Cancel jobs: at once if they are queued, else by a request to their runner."""

from exclave.control.progress.build_waits import end_build
from exclave.control.progress.workflow_changes import Change
from exclave.control.progress.workflow_events import WorkflowEvent, make_end_event
from exclave.domain.builds import BuildFailure
from exclave.domain.identity import OrgId
from exclave.domain.jobs import JobId, JobKind, JobState, Reason
from exclave.flow.decide import Effect
from exclave.flow.events import Answered
from exclave.storage import jobs
from exclave.storage.engine.database import Tx


def cancel_jobs(tx: Tx, change: Change) -> list[WorkflowEvent]:
    """Request the cancellation of running jobs; jobs that were not started end at once."""
    follow: list[WorkflowEvent] = []
    for move in change.moves:
        job = change.before.job_ids[move.step]
        if move.effect is not Effect.CANCEL_JOB or job is None:
            continue
        ended = end_unstarted_job(tx, change.before.org, job)
        if ended is not None:
            follow += [ended, *end_unstarted_build(tx, change.before.org, job)]
    return follow


def end_unstarted_build(tx: Tx, org: OrgId, job: JobId) -> list[WorkflowEvent]:
    """Fail the build of a job that was cancelled before it ran; return events for its waits."""
    row = jobs.find_job(tx, org, job)
    if row is None or row.kind is not JobKind.BUILD:
        return []
    cancelled = BuildFailure("cancelled before it began")
    return [
        WorkflowEvent(org, wait.workflow, Answered(wait.position, wait.attempt))
        for wait in end_build(tx, org, str(row.spec["build_id"]), cancelled)
    ]


def end_unstarted_job(tx: Tx, org: OrgId, job: JobId) -> WorkflowEvent | None:
    """Cancel a job: at once if it is queued, else by a stored request to its runner."""
    row = jobs.find_job(tx, org, job, lock=True)
    if row is None or row.state.is_final:
        return None
    jobs.request_cancel(tx, org, job)
    if row.state is JobState.QUEUED:
        jobs.end_job(tx, org, job, JobState.CANCELLED, reason=Reason.CANCELLED)
        return make_end_event(row, JobState.CANCELLED, reason=Reason.CANCELLED)
    tx.wake(f"cancel:{row.queue_id}")
    return None
