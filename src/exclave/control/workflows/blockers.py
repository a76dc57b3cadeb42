"""Explain why a ready step or job has not started: busy lane, earlier workflow, no runner."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TypeVar

from exclave.base.json_values import JsonObject
from exclave.control.deps import Deps
from exclave.control.dispatch.presence import find_presence
from exclave.domain.identity import OrgId, QueueId, QueueKind
from exclave.domain.installs import AppInstall
from exclave.domain.jobs import Job, JobState
from exclave.domain.lanes import SANDBOX, LaneState
from exclave.domain.presence import Presence, PresenceState
from exclave.domain.queues import Lane, Ticket
from exclave.domain.runners import Runner, RunnerState
from exclave.domain.workflow_records import StepRecord, WorkflowRecord
from exclave.domain.workflows import StepKind, StepState, WorkflowId, WorkflowState
from exclave.storage import executions, installs, jobs, queues, runners, steps, tickets, workflows
from exclave.storage.engine.database import Tx
from exclave.wire.jobs import Blocker
from exclave.wire.runner import ROLES_MINOR, read_minor

T = TypeVar("T")

_MOST_RUNNERS = 100


def find_step_blockers(
    tx: Tx, deps: Deps, org: OrgId, workflow: WorkflowRecord, own_steps: Sequence[StepRecord]
) -> Mapping[int, Blocker]:
    """Return the blockers of a workflow's steps by position."""
    if workflow.state is not WorkflowState.RUNNING:
        return {}
    states = {step.position: step.state for step in own_steps}
    queue = _QueueState(tx, deps, org, workflow.queue_id)
    blockers = {}
    for step in own_steps:
        blocker = None
        is_queued = step.state is StepState.ACTIVE and step.job_state is JobState.QUEUED
        if is_queued and step.job_kind is not None:
            load_spec = partial(_load_spec, tx, org, step)
            blocker = queue.find_for_job(step.job_kind, step.lanes, load_spec)
        elif _is_ready(step, states):
            blocker = queue.find_turn(workflow.id, step.lanes) if step.mutating else None
            blocker = blocker or queue.find_lack(step.message)
        if blocker is not None:
            blockers[step.position] = blocker
    return blockers


def _load_spec(tx: Tx, org: OrgId, step: StepRecord) -> JsonObject:
    job = None if step.job_id is None else jobs.find_job(tx, org, step.job_id)
    return {} if job is None else job.spec


def find_job_blocker(tx: Tx, deps: Deps, job: Job) -> Blocker | None:
    """Return why no runner has taken a queued job."""
    queue = _QueueState(tx, deps, job.org_id, job.queue_id)
    return queue.find_for_job(job.kind, job.lanes, lambda: job.spec)


@dataclass
class _QueueState:
    """The state of a queue, in which what several steps need is read once."""

    tx: Tx
    deps: Deps
    org: OrgId
    queue: QueueId
    known: dict[str, Blocker | None] = field(default_factory=dict)
    """Blockers that were found already, by lane, workflow or kind of job."""

    @cached_property
    def runners(self) -> Sequence[Runner]:
        """The runners of the queue."""
        return runners.list_runners(self.tx, self.org, "", _MOST_RUNNERS, self.queue)

    @cached_property
    def active(self) -> Sequence[Runner]:
        """Those that are not revoked or replaced."""
        return [runner for runner in self.runners if runner.state is RunnerState.ACTIVE]

    @cached_property
    def has_old_runner(self) -> bool:
        """Whether some runner does not understand roles, so that it matters who has one."""
        return not all(_knows_roles(runner) for runner in self.active)

    @cached_property
    def taken(self) -> dict[str, Lane]:
        """The lanes that are not free."""
        lanes = queues.list_lanes(self.tx, self.org, self.queue)
        return {lane.name: lane for lane in lanes if lane.state is not LaneState.FREE}

    @cached_property
    def line(self) -> Sequence[Ticket]:
        """All tickets, oldest first."""
        return tickets.list_tickets(self.tx, self.org, self.queue)

    @cached_property
    def first(self) -> dict[str, Ticket]:
        """The oldest ticket by lane."""
        return {ticket.lane: ticket for ticket in reversed(self.line)}

    @cached_property
    def places(self) -> dict[WorkflowId, int]:
        """The oldest ticket number by workflow."""
        return {ticket.workflow_id: ticket.seq for ticket in reversed(self.line)}

    def find_for_job(
        self, kind: str, lanes: Sequence[str], load_spec: Callable[[], JsonObject]
    ) -> Blocker | None:
        """Return the blocker of a queued job; a lane that needs reconciliation comes first."""
        taken = _pick_conflicting(self.taken, lanes)
        if taken:
            lane = min(taken, key=lambda lane: (lane.state is LaneState.BUSY, lane.name))
            return self._once(
                f"lane {lane.name}", lambda: _block_on_lane(self.tx, self.org, self.queue, lane)
            )
        has_role = self.has_old_runner and bool(load_spec().get("role"))
        return self._once(
            f"kind {kind}, {has_role=}", lambda: self._find_missing_runner(kind, has_role=has_role)
        )

    def find_turn(self, workflow: WorkflowId, lanes: Sequence[str]) -> Blocker | None:
        """Return the earlier workflow that holds up a step on one of its lanes."""
        mine = self.places.get(workflow, 0)
        ahead = [held for held in _pick_conflicting(self.first, lanes) if held.seq < mine]
        if not ahead:
            return None
        ticket = min(ahead, key=lambda held: (held.seq, held.lane))
        blocker = self._once(
            f"turn {ticket.workflow_id}", lambda: _block_on_workflow(self.tx, self.org, ticket)
        )
        if blocker is None or blocker.lane == ticket.lane:
            return blocker
        message = blocker.message.replace(f"on lane {blocker.lane}", f"on lane {ticket.lane}")
        return blocker.model_copy(update={"lane": ticket.lane, "message": message})

    def find_lack(self, message: str) -> Blocker | None:
        """Return the blocker of a step that waits for another version of the Stack."""
        if not message:
            return None
        install = _name_install(self.tx, self.org, self.queue)
        return Blocker(
            lane=None,
            job_id=None,
            workflow_id=None,
            message=message,
            hint="It goes on when the customer has applied the newest version:"
            f" exclave installs stack {install}",
        )

    def _find_missing_runner(self, kind: str, *, has_role: bool) -> Blocker | None:
        """Return why no runner can take a job of that kind; None if one can."""
        able = [runner for runner in self.active if kind in runner.capabilities]
        what = f"no runner does `{kind}` jobs"
        if has_role and able:
            able = [runner for runner in able if _knows_roles(runner)]
            what = "the runner is too old for jobs with a role"
        presences = [(runner, find_presence(self.deps, runner, self.tx.now)) for runner in able]
        if any(presence.state is PresenceState.UP for _, presence in presences):
            return None
        enrol = _advise_enrolment(self.tx, self.org, self.queue)
        if not self.active:
            return _block_on_runner(_describe_closed(self.runners), enrol)
        if not able:
            return _block_on_runner(what, "Update the runner's program.")
        return _describe_absent(presences, enrol)

    def _once(self, name: str, find: Callable[[], Blocker | None]) -> Blocker | None:
        if name not in self.known:
            self.known[name] = find()
        return self.known[name]


def _pick_conflicting(by_lane: Mapping[str, T], lanes: Sequence[str]) -> list[T]:
    """Return the values of lanes that exclude one of `lanes`."""
    if not lanes:
        return []
    if SANDBOX in lanes:
        return list(by_lane.values())
    return [by_lane[lane] for lane in dict.fromkeys((SANDBOX, *lanes)) if lane in by_lane]


def _block_on_lane(tx: Tx, org: OrgId, queue: QueueId, lane: Lane) -> Blocker:
    job = _find_holder(tx, org, lane)
    about = {
        "lane": lane.name,
        "job_id": None if job is None else job.id,
        "workflow_id": None if job is None else job.workflow_id,
    }
    if lane.state is LaneState.BUSY:
        end = "Wait for it" + ("" if job is None else f", or end it: exclave jobs cancel {job.id}")
        return Blocker(message=f"lane {lane.name} is in use by {_name_job(job)}", hint=end, **about)
    install = _name_install(tx, org, queue)
    return Blocker(
        message=f"lane {lane.name} is blocked: {_describe_loss(lane, job)}",
        hint=f"See what is left: exclave installs orphans {install}. Then free the lane:"
        f" exclave installs release-lane {install} {lane.name} --reason …",
        **about,
    )


def _is_ready(step: StepRecord, states: Mapping[int, StepState]) -> bool:
    is_job = step.kind is StepKind.JOB and step.state is StepState.PENDING
    return is_job and all(states[need].lets_pass for need in step.needs)


def _block_on_workflow(tx: Tx, org: OrgId, ticket: Ticket) -> Blocker | None:
    first = workflows.find_workflow(tx, org, ticket.workflow_id)
    if first is None:
        return None
    gate = _find_gate(tx, org, first.id)
    waits = f", and waits for approval of `{gate}`" if gate else ""
    answer = f"Answer it: exclave workflows approve {first.id} {gate}" if gate else "Wait for it"
    return Blocker(
        lane=ticket.lane,
        workflow_id=first.id,
        job_id=None,
        message=f"workflow `{first.name}` ({first.id}) came first on lane {ticket.lane}{waits}",
        hint=f"{answer}, or cancel it: exclave workflows cancel {first.id}",
    )


def _find_gate(tx: Tx, org: OrgId, workflow: WorkflowId) -> str:
    open_steps = (s for s in steps.list_steps(tx, org, workflow) if s.state is StepState.ACTIVE)
    return next((step.name for step in open_steps if step.kind is StepKind.GATE), "")


def _find_holder(tx: Tx, org: OrgId, lane: Lane) -> Job | None:
    if lane.execution_id is None:
        return None
    execution = executions.find_execution(tx, org, lane.execution_id)
    return None if execution is None else jobs.find_job(tx, org, execution.job_id)


def _name_job(job: Job | None) -> str:
    if job is None:
        return "other work"
    return f"job {job.id} (`{job.step_name}` of workflow {job.workflow_id})"


def _describe_loss(lane: Lane, job: Job | None) -> str:
    return lane.reason if job is None else f"{_name_job(job)} was lost half-way"


def _name_install(tx: Tx, org: OrgId, queue: str) -> str:
    install = installs.find_install(tx, org, queue)
    return queue if install is None else install.name


def _knows_roles(runner: Runner) -> bool:
    return read_minor(runner.protocol) >= ROLES_MINOR


def _describe_absent(presences: Sequence[tuple[Runner, Presence]], enrol: str) -> Blocker:
    """Return why the runner that is nearest to being there is not."""
    runner, presence = min(presences, key=lambda item: list(PresenceState).index(item[1].state))
    if presence.state is PresenceState.DISABLED:
        return _block_on_runner(
            f"the customer has disabled runner `{runner.name}`",
            "It goes on when the customer enables it: exclave stack enable",
        )
    return _block_on_runner(
        f"runner `{runner.name}` is {presence.state}: {presence.cause}",
        f"On its machine, `exclave runner doctor` tells what is wrong. {enrol}",
    )


def _block_on_runner(message: str, hint: str) -> Blocker:
    return Blocker(lane=None, job_id=None, workflow_id=None, message=message, hint=hint)


def _advise_enrolment(tx: Tx, org: OrgId, queue: QueueId) -> str:
    row = queues.find_queue(tx, org, queue)
    if row is not None and row.kind is QueueKind.BUILD:
        return "Start a build runner: exclave runners enrol --build"
    install = installs.find_install(tx, org, queue)
    if isinstance(install, AppInstall):
        return f"Let the customer run a Stack: exclave installs stack {install.name}"
    name = queue if install is None else install.name
    return f"Start a runner: exclave runners enrol --install {name}"


def _describe_closed(closed: Sequence[Runner]) -> str:
    if not closed:
        return "no runner was ever enrolled"
    last = closed[-1]
    return f"runner `{last.name}` is {last.state}: {last.state_reason}"
