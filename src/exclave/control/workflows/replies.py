"""Build API replies from workflow and job rows."""

from collections.abc import Mapping, Sequence

from exclave.domain.executions import Execution
from exclave.domain.jobs import Job
from exclave.domain.workflows import StepKind, StepState
from exclave.storage.engine.database import AnyRow
from exclave.wire.jobs import Blocker, ExecutionReply, JobReply
from exclave.wire.workflows import StepReply, WorkflowReply, WorkflowSummary


def summarise_workflow(row: AnyRow) -> WorkflowSummary:
    """Return the reply for a workflow without its steps."""
    return WorkflowSummary(
        id=row.id,
        name=row.name,
        queue_id=row.queue_id,
        state=row.state,
        approve_all=row.approve_all,
        plan_only=row.plan_only,
        cancel_requested=row.cancel_requested,
        labels=row.labels,
        created_at=row.created_at,
        created_by=row.created_by,
        finished_at=row.finished_at,
    )


def show_workflow(
    row: AnyRow, steps: Sequence[AnyRow], blockers: Mapping[int, Blocker] | None = None
) -> WorkflowReply:
    """Return the reply for a workflow with its steps and their blockers."""
    blocked = blockers or {}
    names = {step.position: step.name for step in steps}
    summary = summarise_workflow(row)
    shown = [_show_step(step, names, blocked.get(step.position)) for step in steps]
    return WorkflowReply(**summary.model_dump(), revision=row.revision, steps=shown)


def _show_step(row: AnyRow, names: dict[int, str], blocker: Blocker | None) -> StepReply:
    return StepReply(
        index=row.position,
        name=row.name,
        kind=row.kind,
        state=row.state,
        needs=[names[need] for need in row.needs],
        lanes=list(row.lanes),
        mutating=row.mutating,
        attempt=row.attempt,
        digest=row.digest,
        reason=row.reason,
        message=row.message,
        job_id=row.job_id,
        job_state=row.job_state,
        outputs=row.outputs,
        waiting_for=_find_wait(row, blocker),
        blocked_by=blocker,
        started_at=row.started_at,
        finished_at=row.finished_at,
        due_at=row.due_at,
        answered_by=row.answered_by,
    )


def _find_wait(row: AnyRow, blocker: Blocker | None) -> str:
    """Return in one word what a step waits for."""
    if row.state != StepState.ACTIVE:
        return "" if blocker is None else "turn"
    if blocker is not None:
        return "runner" if blocker.lane is None else "lane"
    match StepKind(row.kind):
        case StepKind.GATE:
            return "approval"
        case StepKind.WAIT:
            return "event"
        case StepKind.TIMER:
            return "time"
        case StepKind.JOB:
            return "runner" if row.job_state == "queued" else "job"


def show_job(
    job: Job, executions: Sequence[Execution] = (), blocker: Blocker | None = None
) -> JobReply:
    """Show a job with its attempts."""
    return JobReply(
        id=job.id,
        queue_id=job.queue_id,
        workflow_id=job.workflow_id,
        step=job.step_name,
        kind=job.kind,
        mutating=job.mutating,
        lanes=job.lanes,
        state=job.state,
        priority=job.priority,
        attempts=job.attempts,
        cancel_requested_at=job.cancel_requested_at,
        reason=job.reason,
        message=job.message,
        exit_code=job.exit_code,
        outputs=job.outputs,
        created_at=job.created_at,
        finished_at=job.finished_at,
        executions=[show_execution(e) for e in executions],
        blocked_by=blocker,
    )


def show_execution(execution: Execution) -> ExecutionReply:
    """Return the reply for an execution; its log is complete once it has the announced length."""
    return ExecutionReply(
        id=execution.id,
        runner_id=execution.runner_id,
        state=execution.state,
        epoch=execution.epoch,
        offered_at=execution.offered_at,
        started_at=execution.started_at,
        renewed_at=execution.renewed_at,
        ended_at=execution.ended_at,
        reason=execution.reason,
        log_bytes=execution.log_bytes,
        log_complete=execution.log_end is not None and execution.log_bytes >= execution.log_end,
    )
