"""What stands before work that could begin: a lane, a turn, a runner that is missing."""

from collections.abc import Mapping, Sequence

from exclave.control.deps import Deps
from exclave.control.missing_runners import find_missing_runner
from exclave.domain.identity import OrgId, QueueId
from exclave.domain.jobs import ExecutionId, JobId, JobState
from exclave.domain.lanes import LaneState, conflict, conflicts_any
from exclave.domain.workflows import StepKind, StepState, WorkflowId, WorkflowState
from exclave.storage import executions, installs, jobs, queues, workflows
from exclave.storage.database import AnyRow, Tx
from exclave.wire.jobs import Blocker


def find_step_blockers(
    tx: Tx, deps: Deps, org: OrgId, workflow: AnyRow, steps: Sequence[AnyRow]
) -> Mapping[int, Blocker]:
    """Find by position what keeps steps of a workflow from going on."""
    if workflow.state != WorkflowState.RUNNING:
        return {}
    states = {step.position: StepState(step.state) for step in steps}
    found = {}
    for step in steps:
        lanes = step.lanes.split(",") if step.lanes else []
        blocker = None
        if step.state == StepState.ACTIVE and step.job_state == JobState.QUEUED:
            blocker = find_job_blocker(tx, deps, org, (workflow.queue_id, step.job_kind, lanes))
        elif step.mutating and _is_ready(step, states):
            blocker = _find_turn(tx, org, workflow, lanes)
        if blocker is not None:
            found[int(step.position)] = blocker
    return found


def find_job_blocker(
    tx: Tx, deps: Deps, org: OrgId, job: tuple[QueueId, str, Sequence[str]]
) -> Blocker | None:
    """Find what keeps a queued job, by its queue, kind and lanes, from a runner."""
    queue, kind, lanes = job
    found = _find_lane_blocker(tx, org, queue, lanes)
    return found or find_missing_runner(tx, deps, org, queue, kind)


def _find_lane_blocker(tx: Tx, org: OrgId, queue: str, lanes: Sequence[str]) -> Blocker | None:
    """Find the lane that keeps a queued job from a runner; one to be looked at comes first."""
    if not lanes:
        return None
    rows = [
        row
        for row in queues.list_lanes(tx, org, QueueId(queue))
        if row.state != LaneState.FREE and conflicts_any(lanes, [row.name])
    ]
    if not rows:
        return None
    lane = min(rows, key=lambda row: (row.state == LaneState.BUSY, row.name))
    job = _find_holder(tx, org, lane)
    about = {
        "lane": lane.name, "job_id": None if job is None else job.id,
        "workflow_id": None if job is None else job.workflow_id,
    }  # fmt: skip
    if lane.state == LaneState.BUSY:
        end = "Wait for it" + ("" if job is None else f", or end it: exclave jobs cancel {job.id}")
        return Blocker(message=f"lane {lane.name} is in use by {_name_job(job)}", hint=end, **about)
    place = _name_install(tx, org, queue)
    return Blocker(
        message=f"lane {lane.name} is blocked: {_tell_why(lane, job)}",
        hint=f"See what is left: exclave installs orphans {place}. Then free the lane:"
        f" exclave installs release-lane {place} {lane.name} --reason …",
        **about,
    )


def _is_ready(step: AnyRow, states: Mapping[int, StepState]) -> bool:
    needs = [int(need) for need in step.needs.split(",")] if step.needs else []
    is_job = step.kind == StepKind.JOB and step.state == StepState.PENDING
    return is_job and all(states[need].lets_pass for need in needs)


def _find_turn(tx: Tx, org: OrgId, workflow: AnyRow, lanes: Sequence[str]) -> Blocker | None:
    """Find the workflow that came first on a lane which a step wants."""
    rows = queues.list_tickets(tx, org, QueueId(workflow.queue_id))
    mine = min((row.seq for row in rows if row.workflow_id == workflow.id), default=0)
    ahead = [
        row
        for row in rows
        if row.workflow_id != workflow.id and row.seq < mine
        and any(conflict(lane, row.lane) for lane in lanes)
    ]  # fmt: skip
    first = None if not ahead else workflows.find_workflow(tx, org, ahead[0].workflow_id)
    if first is None:
        return None
    gate = _find_gate(tx, org, first.id)
    waits = f", and waits for approval of `{gate}`" if gate else ""
    answer = f"Answer it: exclave workflows approve {first.id} {gate}" if gate else "Wait for it"
    return Blocker(
        lane=ahead[0].lane, workflow_id=first.id, job_id=None,
        message=f"workflow `{first.name}` ({first.id}) came first on lane {ahead[0].lane}{waits}",
        hint=f"{answer}, or cancel it: exclave workflows cancel {first.id}",
    )  # fmt: skip


def _find_gate(tx: Tx, org: OrgId, workflow: WorkflowId) -> str:
    steps = workflows.list_steps(tx, org, workflow)
    gates = (s.name for s in steps if s.kind == StepKind.GATE and s.state == StepState.ACTIVE)
    return next(gates, "")


def _find_holder(tx: Tx, org: OrgId, lane: AnyRow) -> AnyRow | None:
    if lane.execution_id is None:
        return None
    execution = executions.find_execution(tx, org, ExecutionId(lane.execution_id))
    return None if execution is None else jobs.find_job(tx, org, JobId(execution.job_id))


def _name_job(job: AnyRow | None) -> str:
    if job is None:
        return "other work"
    step = f" (`{job.step_name}` of workflow {job.workflow_id})" if job.workflow_id else ""
    return f"job {job.id}{step}"


def _tell_why(lane: AnyRow, job: AnyRow | None) -> str:
    return str(lane.reason) if job is None else f"{_name_job(job)} was lost half-way"


def _name_install(tx: Tx, org: OrgId, queue: str) -> str:
    row = installs.find_install(tx, org, queue)
    return queue if row is None else str(row.name)
