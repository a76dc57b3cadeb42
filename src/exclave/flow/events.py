"""The events of a workflow, and what each changes. Pure, and idempotent."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import assert_never

from exclave.base.errors import Conflict, NotFound
from exclave.domain.jobs import JobState
from exclave.domain.workflows import Step, StepKind, StepState, Workflow, WorkflowState


class GateDecision(StrEnum):
    """What the result of a plan decides about the gates that wait for it."""

    ASK = "ask"
    SKIP = "skip"
    """Nothing to change: the gate and the steps behind it are skipped."""
    APPROVE = "approve"
    """The app's policies approve it."""
    GO_ON = "go_on"
    """Nothing to decide: the gate passes, and the steps behind it run."""


@dataclass(frozen=True, slots=True)
class JobEnded:
    """The job of a step reached its final state."""

    step: int
    attempt: int
    state: JobState
    digest: str = ""
    reason: str = ""
    then: GateDecision = GateDecision.ASK


@dataclass(frozen=True, slots=True)
class Approved:
    """Somebody approved exactly this digest."""

    step: int
    digest: str


@dataclass(frozen=True, slots=True)
class Denied:
    """Somebody refused this digest; with `skip`, what needs the gate is left out."""

    step: int
    digest: str
    skip: bool = False
    reason: str = "denied"
    attempt: int | None = None
    """Which opening of the gate is meant; None is whichever is open."""


@dataclass(frozen=True, slots=True)
class Answered:
    """The outside world answered a waiting step, or a timer came due."""

    step: int
    attempt: int
    digest: str = ""


@dataclass(frozen=True, slots=True)
class Retried:
    """Somebody wants a step to be done again."""

    step: int
    lost: bool = False
    """What of it was lost half-way has been looked at, and may be done again as well."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """Somebody wants to go on without a step."""

    step: int
    reason: str


@dataclass(frozen=True, slots=True)
class CancelRequested:
    """Somebody wants the whole workflow to end."""


@dataclass(frozen=True, slots=True)
class ApproveAllSet:
    """Somebody switched automatic approval."""

    on: bool


Event = (
    JobEnded | Approved | Denied | Answered | Retried | Skipped | CancelRequested | ApproveAllSet
)

_ENDINGS = {
    JobState.SUCCEEDED: StepState.SUCCEEDED,
    JobState.FAILED: StepState.FAILED,
    JobState.CANCELLED: StepState.CANCELLED,
    JobState.LOST: StepState.LOST,
}


def apply_event(workflow: Workflow, event: Event) -> Workflow:
    """Return the workflow after an event; one that was applied before changes nothing."""
    match event:
        case JobEnded():
            return _end_job(workflow, event)
        case Approved():
            return _approve(workflow, event)
        case Denied():
            return _deny(workflow, event)
        case Answered():
            return _answer(workflow, event)
        case Retried():
            return _retry(workflow, event)
        case Skipped():
            return _skip(workflow, event)
        case CancelRequested():
            return _cancel(workflow)
        case ApproveAllSet():
            return replace(workflow, approve_all=event.on)
        case _:
            assert_never(event)


def find_dependents(steps: Iterable[Step], index: int) -> frozenset[int]:
    """Return every step that needs this one, directly or through others."""
    dependents = list_dependents(steps)
    closure: set[int] = set()
    todo = [index]
    while todo:
        more = [step for step in dependents.get(todo.pop(), ()) if step not in closure]
        closure.update(more)
        todo += more
    return frozenset(closure - {index})


def list_dependents(steps: Iterable[Step]) -> dict[int, list[int]]:
    """Return for each needed step the steps that need it."""
    dependents: dict[int, list[int]] = {}
    for step in steps:
        for need in step.needs:
            dependents.setdefault(need, []).append(step.index)
    return dependents


def with_steps(workflow: Workflow, changed: Iterable[Step]) -> Workflow:
    """Return the workflow with some steps replaced."""
    steps = list(workflow.steps)
    for step in changed:
        steps[step.index] = step
    return replace(workflow, steps=tuple(steps))


def _step(workflow: Workflow, index: int) -> Step:
    if not 0 <= index < len(workflow.steps):
        raise NotFound(f"the workflow has no step {index}")
    return workflow.steps[index]


def _end_job(workflow: Workflow, event: JobEnded) -> Workflow:
    step = _step(workflow, event.step)
    if step.state is not StepState.ACTIVE or step.attempt != event.attempt:
        return workflow
    ended = step._replace(state=_ENDINGS[event.state], digest=event.digest, reason=event.reason)
    workflow = with_steps(workflow, [ended])
    return (
        workflow if event.then is GateDecision.ASK else _answer_gates(workflow, ended, event.then)
    )


def _answer_gates(workflow: Workflow, plan: Step, then: GateDecision) -> Workflow:
    """Answer the gates that ask about this plan alone, before a person is asked."""
    if plan.state is not StepState.SUCCEEDED:
        return workflow
    gates = [
        step
        for step in workflow.steps
        if step.kind is StepKind.GATE
        and step.needs == (plan.index,)
        and step.state is StepState.PENDING
    ]
    if then is not GateDecision.SKIP:
        passed, why = (
            StepState.SUCCEEDED,
            "policies" if then is GateDecision.APPROVE else "no_changes",
        )
        return with_steps(
            workflow, [g._replace(state=passed, digest=plan.digest, reason=why) for g in gates]
        )
    asked = {gate.index for gate in gates}
    guarded = [s for s in workflow.steps if s.mutating and asked & set(s.needs)]
    skipped = StepState.SKIPPED
    return with_steps(
        workflow, [step._replace(state=skipped, reason="no_changes") for step in gates + guarded]
    )


def _approve(workflow: Workflow, event: Approved) -> Workflow:
    step = _open_gate(workflow, event.step, event.digest)
    if step.state is StepState.SUCCEEDED:
        return workflow
    return with_steps(workflow, [step._replace(state=StepState.SUCCEEDED, reason="approved")])


def _deny(workflow: Workflow, event: Denied) -> Workflow:
    wanted = StepState.SKIPPED if event.skip else StepState.FAILED
    if event.attempt not in {None, _step(workflow, event.step).attempt}:
        return workflow
    step = _open_gate(workflow, event.step, event.digest, done=wanted)
    if step.state is wanted:
        return workflow
    changed = [step._replace(state=wanted, reason=event.reason)]
    if event.skip:
        changed += [
            workflow.steps[index]._replace(state=StepState.SKIPPED, reason=event.reason)
            for index in find_dependents(workflow.steps, event.step)
        ]
    return with_steps(workflow, changed)


def _open_gate(
    workflow: Workflow, index: int, digest: str, done: StepState = StepState.SUCCEEDED
) -> Step:
    step = _step(workflow, index)
    if step.kind is not StepKind.GATE:
        raise Conflict(f"step `{step.name}` is not a gate", hint="Only gates are approved.")
    if step.digest and step.digest != digest:
        raise Conflict(
            f"gate `{step.name}` now asks about another plan",
            hint="Look at the workflow again and decide about the digest that it shows now.",
            expected=step.digest,
        )
    if step.state not in {StepState.ACTIVE, done}:
        raise Conflict(f"gate `{step.name}` is not open: it is {step.state}")
    return step


def _answer(workflow: Workflow, event: Answered) -> Workflow:
    step = _step(workflow, event.step)
    if step.kind not in {StepKind.WAIT, StepKind.TIMER}:
        raise Conflict(f"step `{step.name}` waits for no event")
    if step.attempt != event.attempt or step.state is StepState.SUCCEEDED:
        return workflow
    if step.state is not StepState.ACTIVE:
        raise Conflict(f"step `{step.name}` does not wait now: it is {step.state}")
    return with_steps(workflow, [step._replace(state=StepState.SUCCEEDED, digest=event.digest)])


def _retry(workflow: Workflow, event: Retried) -> Workflow:
    step = _step(workflow, event.step)
    _refuse_cancelled(workflow)
    if step.state in {StepState.PENDING, StepState.ACTIVE}:
        raise Conflict(f"step `{step.name}` has not ended: it is {step.state}")
    if step.state is StepState.SUCCEEDED and (step.mutating or step.kind is not StepKind.JOB):
        raise Conflict(
            f"step `{step.name}` succeeded", hint="Only a failed step, or a plan, is done again."
        )
    again = [_reset(step)]
    for dependent in sorted(find_dependents(workflow.steps, event.step)):
        later = workflow.steps[dependent]
        if _is_done_for_good(later, lost=event.lost):
            raise Conflict(f"step `{later.name}` already built on `{step.name}`")
        if later.state is not StepState.PENDING:
            again.append(_reset(later))
    return replace(with_steps(workflow, again), state=WorkflowState.RUNNING)


def _is_done_for_good(step: Step, *, lost: bool) -> bool:
    if step.kind is StepKind.JOB and step.state is StepState.ACTIVE:
        return True
    final = {StepState.SUCCEEDED} if lost else {StepState.SUCCEEDED, StepState.LOST}
    return step.mutating and step.state in final


def _reset(step: Step) -> Step:
    return step._replace(state=StepState.PENDING, digest="", reason="", attempt=step.attempt + 1)


def _skip(workflow: Workflow, event: Skipped) -> Workflow:
    step = _step(workflow, event.step)
    _refuse_cancelled(workflow)
    if step.state is StepState.SKIPPED:
        return workflow
    if step.kind is StepKind.GATE:
        raise Conflict(
            f"gate `{step.name}` is answered, not skipped",
            hint="Deny it with skip to leave out what needs it.",
        )
    if step.state is StepState.SUCCEEDED or (
        step.kind is StepKind.JOB and step.state is StepState.ACTIVE
    ):
        raise Conflict(
            f"step `{step.name}` is {step.state}", hint="Cancel its job first if it still runs."
        )
    skipped = step._replace(state=StepState.SKIPPED, reason=event.reason)
    return replace(with_steps(workflow, [skipped]), state=WorkflowState.RUNNING)


def _cancel(workflow: Workflow) -> Workflow:
    match workflow.state:
        case WorkflowState.RUNNING:
            return replace(workflow, cancel_requested=True)
        case WorkflowState.CANCELLED:
            return workflow
        case WorkflowState.SUCCEEDED | WorkflowState.FAILED:
            raise Conflict(f"the workflow has ended: it is {workflow.state}")


def _refuse_cancelled(workflow: Workflow) -> None:
    if workflow.cancel_requested:
        raise Conflict("the workflow was cancelled", hint="Start a new workflow.")
