"""Build API replies from workflows, steps, jobs and executions."""

from collections.abc import Mapping, Sequence

from exclave.domain.executions import Execution
from exclave.domain.jobs import Job, JobState
from exclave.domain.workflow_records import StepRecord, WorkflowRecord
from exclave.domain.workflows import StepKind, StepState
from exclave.wire.jobs import Blocker, ExecutionReply, JobReply
from exclave.wire.workflows import StepReply, WorkflowReply, WorkflowSummary


def summarise_workflow(workflow: WorkflowRecord) -> WorkflowSummary:
    """Return the reply for a workflow without its steps."""
    return WorkflowSummary(
        id=workflow.id,
        name=workflow.name,
        queue_id=workflow.queue_id,
        state=workflow.state,
        approve_all=workflow.approve_all,
        plan_only=workflow.plan_only,
        cancel_requested=workflow.cancel_requested,
        labels=workflow.labels,
        created_at=workflow.created_at,
        created_by=workflow.created_by,
        finished_at=workflow.finished_at,
    )


def show_workflow(
    workflow: WorkflowRecord,
    steps: Sequence[StepRecord],
    blockers: Mapping[int, Blocker] | None = None,
) -> WorkflowReply:
    """Return the reply for a workflow with its steps and their blockers."""
    blocked = blockers or {}
    names = {step.position: step.name for step in steps}
    summary = summarise_workflow(workflow)
    shown = [_show_step(step, names, blocked.get(step.position)) for step in steps]
    return WorkflowReply(**summary.model_dump(), revision=workflow.revision, steps=shown)


def _show_step(step: StepRecord, names: dict[int, str], blocker: Blocker | None) -> StepReply:
    return StepReply(
        index=step.position,
        name=step.name,
        kind=step.kind,
        state=step.state,
        needs=[names[need] for need in step.needs],
        lanes=list(step.lanes),
        mutating=step.mutating,
        attempt=step.attempt,
        digest=step.digest,
        reason=step.reason,
        message=step.message,
        job_id=step.job_id,
        job_state=step.job_state,
        outputs=step.outputs,
        waiting_for=_find_wait(step, blocker),
        blocked_by=blocker,
        started_at=step.started_at,
        finished_at=step.finished_at,
        due_at=step.due_at,
        answered_by=step.answered_by,
    )


def _find_wait(step: StepRecord, blocker: Blocker | None) -> str:
    """Return in one word what a step waits for."""
    if step.state is not StepState.ACTIVE:
        return "" if blocker is None else "turn"
    if blocker is not None:
        return "runner" if blocker.lane is None else "lane"
    match step.kind:
        case StepKind.GATE:
            return "approval"
        case StepKind.WAIT:
            return "event"
        case StepKind.TIMER:
            return "time"
        case StepKind.JOB:
            return "runner" if step.job_state is JobState.QUEUED else "job"


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
