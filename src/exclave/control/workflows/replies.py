"""Build API replies from workflow and job rows."""

from collections.abc import Mapping, Sequence

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
    row: AnyRow, executions: Sequence[AnyRow] = (), blocker: Blocker | None = None
) -> JobReply:
    """Show a job with its attempts."""
    return JobReply(
        id=row.id,
        queue_id=row.queue_id,
        workflow_id=row.workflow_id,
        step=row.step_name,
        kind=row.kind,
        mutating=row.mutating,
        lanes=row.lanes,
        state=row.state,
        priority=row.priority,
        attempts=row.attempts,
        cancel_requested_at=row.cancel_requested_at,
        reason=row.reason,
        message=row.message,
        exit_code=row.exit_code,
        outputs=row.outputs,
        created_at=row.created_at,
        finished_at=row.finished_at,
        executions=[show_execution(e) for e in executions],
        blocked_by=blocker,
    )


def show_execution(row: AnyRow) -> ExecutionReply:
    """Return the reply for an execution; its log is complete once it has the announced length."""
    return ExecutionReply(
        id=row.id,
        runner_id=row.runner_id,
        state=row.state,
        epoch=row.epoch,
        offered_at=row.offered_at,
        started_at=row.started_at,
        renewed_at=row.renewed_at,
        ended_at=row.ended_at,
        reason=row.reason,
        log_bytes=row.log_bytes,
        log_complete=row.log_end is not None and row.log_bytes >= row.log_end,
    )
