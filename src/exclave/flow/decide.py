"""`decide`: returns what a workflow does next. Pure: no clock, no state, no I/O."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from exclave.base.digests import digest_json
from exclave.domain.lanes import conflicts_any
from exclave.domain.workflows import Step, StepKind, StepState, Workflow, WorkflowState
from exclave.flow.events import list_dependents, with_steps


class Effect(StrEnum):
    """What the caller has to do beside storing the step's new state."""

    START_JOB = "start_job"
    CANCEL_JOB = "cancel_job"
    START_TIMER = "start_timer"
    OPEN_GATE = "open_gate"
    OPEN_WAIT = "open_wait"


@dataclass(frozen=True, slots=True)
class StepEffect:
    """An effect on one step."""

    effect: Effect
    step: int


@dataclass(frozen=True, slots=True)
class Progress:
    """The workflow after all that could be decided, and the effects to carry out."""

    workflow: Workflow
    effects: tuple[StepEffect, ...]


_EFFECTS = {
    StepKind.JOB: Effect.START_JOB,
    StepKind.GATE: Effect.OPEN_GATE,
    StepKind.WAIT: Effect.OPEN_WAIT,
    StepKind.TIMER: Effect.START_TIMER,
}


def decide(workflow: Workflow, blocked: Iterable[str] = ()) -> Progress:
    """Decide until nothing more follows. `blocked` are lanes that earlier workflows still hold.

    Deciding twice changes nothing: whatever was begun is `active` the second time.
    """
    if workflow.state is not WorkflowState.RUNNING:
        return Progress(workflow, ())
    if workflow.cancel_requested:
        return _wind_down(workflow)
    held = frozenset(blocked)
    workflow, effects, passed = _begin_ready_steps(workflow, workflow.steps, held)
    if passed:
        workflow, more = _follow(workflow, passed, held)
        effects += more
    return Progress(_settle(workflow, held), tuple(effects))


def lanes_wanted(workflow: Workflow) -> frozenset[str]:
    """Return the lanes on which the workflow still has mutating steps to run."""
    if workflow.state is not WorkflowState.RUNNING or workflow.plan_only:
        return frozenset()
    return frozenset(
        lane
        for step in workflow.steps
        if step.mutating and not step.state.is_over
        for lane in step.lanes
    )


def gate_digest(workflow: Workflow, gate: Step) -> str:
    """Return the digest a gate asks approval for: of the step before it, or of all of them."""
    needed = [workflow.steps[index] for index in gate.needs]
    if len(needed) == 1 and needed[0].digest:
        return needed[0].digest
    return digest_json([[step.name, step.digest] for step in needed])


def approved_digest(workflow: Workflow, step: Step) -> str | None:
    """Return the digest that was approved before a step, if exactly one gate was."""
    gates = [workflow.steps[i] for i in step.needs if workflow.steps[i].kind is StepKind.GATE]
    passed = [gate.digest for gate in gates if gate.state is StepState.SUCCEEDED]
    return passed[0] if len(passed) == 1 else None


def _begin_ready_steps(
    workflow: Workflow, steps: Iterable[Step], held: frozenset[str]
) -> tuple[Workflow, list[StepEffect], list[int]]:
    """Begin the steps that can; return the effects, and the steps that let others pass at once."""
    changed: list[Step] = []
    effects: list[StepEffect] = []
    for step in steps:
        new = _next_of(workflow, step, held)
        if new is not step:
            changed.append(new)
            if new.state is StepState.ACTIVE:
                effects.append(StepEffect(_EFFECTS[step.kind], step.index))
    passed = [step.index for step in changed if step.state.lets_pass]
    return (with_steps(workflow, changed) if changed else workflow), effects, passed


def _follow(
    workflow: Workflow, passed: Sequence[int], held: frozenset[str]
) -> tuple[Workflow, list[StepEffect]]:
    """Begin what follows from steps that let pass, and what follows from that; each need is
    counted down once, so that a long chain costs no more than a short one of as many needs.
    """
    dependents = list_dependents(workflow.steps)
    missing = {
        step.index: sum(not workflow.steps[need].state.lets_pass for need in step.needs)
        for step in workflow.steps
        if step.state is StepState.PENDING
    }
    ready = {
        dependent
        for index in passed
        for dependent in dependents.get(index, ())
        if not missing.get(dependent, 1)
    }
    effects: list[StepEffect] = []
    while ready:
        steps = [workflow.steps[index] for index in sorted(ready)]
        workflow, begun, passed = _begin_ready_steps(workflow, steps, held)
        effects += begun
        ready = set()
        for dependent in [dependent for index in passed for dependent in dependents.get(index, ())]:
            missing[dependent] = missing.get(dependent, 0) - 1
            if missing[dependent] == 0:
                ready.add(dependent)
    return workflow, effects


def _next_of(workflow: Workflow, step: Step, held: frozenset[str]) -> Step:
    if step.state is StepState.ACTIVE and step.kind is StepKind.GATE and workflow.approve_all:
        return step._replace(state=StepState.SUCCEEDED, reason="approve_all")
    if step.state is not StepState.PENDING:
        return step
    steps = workflow.steps
    if not all(steps[need].state.lets_pass for need in step.needs):
        return step
    if workflow.plan_only and (step.mutating or step.kind is StepKind.GATE):
        return step._replace(state=StepState.SKIPPED, reason="plan_only")
    if step.kind is StepKind.GATE:
        digest = gate_digest(workflow, step)
        if workflow.approve_all:
            return step._replace(state=StepState.SUCCEEDED, digest=digest, reason="approve_all")
        return step._replace(state=StepState.ACTIVE, digest=digest)
    if step.mutating and held and conflicts_any(step.lanes, held):
        return step
    return step._replace(state=StepState.ACTIVE)


def _settle(workflow: Workflow, held: frozenset[str]) -> Workflow:
    steps = workflow.steps
    if any(step.state is StepState.ACTIVE for step in steps):
        return workflow
    if all(step.state.lets_pass for step in steps):
        return replace(workflow, state=WorkflowState.SUCCEEDED)
    if any(_waits_for_lane(workflow, step, held) for step in steps):
        return workflow
    return replace(workflow, state=WorkflowState.FAILED)


def _waits_for_lane(workflow: Workflow, step: Step, held: frozenset[str]) -> bool:
    return (
        step.state is StepState.PENDING
        and all(workflow.steps[need].state.lets_pass for need in step.needs)
        and conflicts_any(step.lanes, held)
    )


def _wind_down(workflow: Workflow) -> Progress:
    effects: list[StepEffect] = []
    changed: list[Step] = []
    for step in workflow.steps:
        if step.state is StepState.ACTIVE and step.kind is StepKind.JOB:
            effects.append(StepEffect(Effect.CANCEL_JOB, step.index))
        elif not step.state.is_over:
            changed.append(step._replace(state=StepState.CANCELLED, reason="cancelled"))
    workflow = with_steps(workflow, changed)
    if not effects:
        workflow = replace(workflow, state=WorkflowState.CANCELLED)
    return Progress(workflow, tuple(effects))
