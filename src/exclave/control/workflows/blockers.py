"""What stands before work that could begin: a lane, a turn, a runner that is missing."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from exclave.control.deps import Deps
from exclave.control.workflows.missing_runners import find_missing_runner
from exclave.domain.identity import OrgId, QueueId
from exclave.domain.jobs import ExecutionId, JobId, JobState
from exclave.domain.lanes import SANDBOX, LaneState
from exclave.domain.workflows import StepKind, StepState, WorkflowId, WorkflowState
from exclave.storage import executions, installs, jobs, queues, workflows
from exclave.storage.engine.database import AnyRow, Tx
from exclave.wire.jobs import Blocker


def find_step_blockers(
    tx: Tx, deps: Deps, org: OrgId, workflow: AnyRow, steps: Sequence[AnyRow]
) -> Mapping[int, Blocker]:
    """Find by position what keeps steps of a workflow from going on."""
    if workflow.state != WorkflowState.RUNNING:
        return {}
    states = {step.position: StepState(step.state) for step in steps}
    look = _Look(tx, deps, org, QueueId(workflow.queue_id))
    found = {}
    for step in steps:
        blocker = None
        if step.state == StepState.ACTIVE and step.job_state == JobState.QUEUED:
            blocker = look.find_for_job(step.job_kind, step.lanes)
        elif step.mutating and _is_ready(step, states):
            blocker = look.find_turn(workflow.id, step.lanes)
        if blocker is not None:
            found[int(step.position)] = blocker
    return found


def find_job_blocker(
    tx: Tx, deps: Deps, org: OrgId, job: tuple[QueueId, str, Sequence[str]]
) -> Blocker | None:
    """Find what keeps a queued job, by its queue, kind and lanes, from a runner."""
    queue, kind, lanes = job
    return _Look(tx, deps, org, queue).find_for_job(kind, lanes)


@dataclass
class _Look:
    """One look at a queue: whatever many steps have in common is read once."""

    tx: Tx
    deps: Deps
    org: OrgId
    queue: QueueId
    told: dict[str, Blocker | None] = field(default_factory=dict)
    """What was found out already, by lane, workflow or kind of job."""

    @cached_property
    def taken(self) -> dict[str, AnyRow]:
        """The lanes that are not free."""
        rows = queues.list_lanes(self.tx, self.org, self.queue)
        return {row.name: row for row in rows if row.state != LaneState.FREE}

    @cached_property
    def line(self) -> Sequence[AnyRow]:
        """All places in line, first come first."""
        return queues.list_tickets(self.tx, self.org, self.queue)

    @cached_property
    def first(self) -> dict[str, AnyRow]:
        """The first place in line by lane."""
        return {row.lane: row for row in reversed(self.line)}

    @cached_property
    def places(self) -> dict[str, int]:
        """The first place in line by workflow."""
        return {row.workflow_id: row.seq for row in reversed(self.line)}

    def find_for_job(self, kind: str, lanes: Sequence[str]) -> Blocker | None:
        """Find what keeps a queued job from a runner; a lane to be looked at comes first."""
        rows = _pick_conflicting(self.taken, lanes)
        if rows:
            lane = min(rows, key=lambda row: (row.state == LaneState.BUSY, row.name))
            return self._once(
                f"lane {lane.name}", lambda: _tell_lane(self.tx, self.org, self.queue, lane)
            )
        return self._once(
            f"kind {kind}",
            lambda: find_missing_runner(self.tx, self.deps, self.org, self.queue, kind),
        )

    def find_turn(self, workflow: WorkflowId, lanes: Sequence[str]) -> Blocker | None:
        """Find the workflow that came first on a lane which a step wants."""
        mine = self.places.get(workflow, 0)
        ahead = [row for row in _pick_conflicting(self.first, lanes) if row.seq < mine]
        if not ahead:
            return None
        row = min(ahead, key=lambda each: (each.seq, each.lane))
        found = self._once(f"turn {row.workflow_id}", lambda: _tell_turn(self.tx, self.org, row))
        if found is None or found.lane == row.lane:
            return found
        message = found.message.replace(f"on lane {found.lane}", f"on lane {row.lane}")
        return found.model_copy(update={"lane": row.lane, "message": message})

    def _once(self, name: str, find: Callable[[], Blocker | None]) -> Blocker | None:
        if name not in self.told:
            self.told[name] = find()
        return self.told[name]


def _pick_conflicting(rows: Mapping[str, AnyRow], lanes: Sequence[str]) -> list[AnyRow]:
    """Pick of rows by lane those that exclude one of some lanes."""
    if not lanes:
        return []
    if SANDBOX in lanes:
        return list(rows.values())
    return [rows[lane] for lane in dict.fromkeys((SANDBOX, *lanes)) if lane in rows]


def _tell_lane(tx: Tx, org: OrgId, queue: QueueId, lane: AnyRow) -> Blocker:
    job = _find_holder(tx, org, lane)
    about = {
        "lane": lane.name,
        "job_id": None if job is None else job.id,
        "workflow_id": None if job is None else job.workflow_id,
    }
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
    is_job = step.kind == StepKind.JOB and step.state == StepState.PENDING
    return is_job and all(states[need].lets_pass for need in step.needs)


def _tell_turn(tx: Tx, org: OrgId, place: AnyRow) -> Blocker | None:
    first = workflows.find_workflow(tx, org, place.workflow_id)
    if first is None:
        return None
    gate = _find_gate(tx, org, first.id)
    waits = f", and waits for approval of `{gate}`" if gate else ""
    answer = f"Answer it: exclave workflows approve {first.id} {gate}" if gate else "Wait for it"
    return Blocker(
        lane=place.lane,
        workflow_id=first.id,
        job_id=None,
        message=f"workflow `{first.name}` ({first.id}) came first on lane {place.lane}{waits}",
        hint=f"{answer}, or cancel it: exclave workflows cancel {first.id}",
    )


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
