"""Random graphs, random events in random order, doubled and after crashes, against a model."""

from dataclasses import dataclass
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from exclave.base.errors import Problem
from exclave.domain.jobs import JobState
from exclave.domain.workflows import Step, StepKind, StepState, Workflow, WorkflowId, WorkflowState
from exclave.flow.decide import Effect, decide
from exclave.flow.events import (
    Answered,
    ApproveAllSet,
    Approved,
    CancelRequested,
    Denied,
    Event,
    JobEnded,
    Retried,
    Skipped,
    apply_event,
)

DIGEST = "sha256:" + "0" * 64
ENDINGS = [JobState.SUCCEEDED, JobState.FAILED, JobState.LOST]


@dataclass(frozen=True)
class Case:
    """A graph, and how each step would end if it ran."""

    workflow: Workflow
    passes: tuple[bool, ...]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    size = draw(st.integers(1, 12))
    steps = []
    for index in range(size):
        kind = draw(st.sampled_from(list(StepKind)))
        needs = draw(st.sets(st.integers(0, index - 1), max_size=3)) if index else set()
        lanes = (f"component:c{index % 3}",) if kind is StepKind.JOB and draw(st.booleans()) else ()
        steps.append(
            Step(
                index,
                f"s{index}",
                kind,
                StepState.PENDING,
                tuple(sorted(needs)),
                lanes,
                mutating=bool(lanes),
            )
        )
    workflow = Workflow(WorkflowId("w"), WorkflowState.RUNNING, tuple(steps))
    return Case(workflow, tuple(draw(st.lists(st.booleans(), min_size=size, max_size=size))))


def expect(case: Case) -> list[StepState]:
    """The model: a step runs if all it needs passed; waits and timers cannot fail."""
    found: list[StepState] = []
    for step, passes in zip(case.workflow.steps, case.passes, strict=True):
        if not all(found[need] is StepState.SUCCEEDED for need in step.needs):
            found.append(StepState.PENDING)
        elif passes or step.kind in {StepKind.WAIT, StepKind.TIMER}:
            found.append(StepState.SUCCEEDED)
        else:
            found.append(StepState.FAILED)
    return found


def answer(step: Step, passes: bool) -> Event:
    match step.kind:
        case StepKind.JOB:
            ending = JobState.SUCCEEDED if passes else JobState.FAILED
            return JobEnded(step.index, step.attempt, ending, DIGEST)
        case StepKind.GATE:
            return Approved(step.index, step.digest) if passes else Denied(step.index, step.digest)
        case StepKind.WAIT | StepKind.TIMER:
            return Answered(step.index, step.attempt)


@settings(max_examples=400, deadline=None)
@given(cases(), st.randoms(use_true_random=False))
def test_any_order_of_events_ends_as_the_model_says(case: Case, rng: Random) -> None:
    workflow = decide(case.workflow).workflow
    sent: list[Event] = []
    for _ in range(200):
        active = [step for step in workflow.steps if step.state is StepState.ACTIVE]
        if not active:
            break
        step = rng.choice(active)
        sent.append(answer(step, case.passes[step.index]))
        for event in [sent[-1], *rng.sample(sent, k=min(len(sent), rng.randint(0, 2)))]:
            workflow = decide(apply_event(workflow, event)).workflow  # a repeat changes nothing
        workflow = decide(workflow).workflow  # a crash after the commit decides again

    assert [step.state for step in workflow.steps] == expect(case)
    passed = all(state is StepState.SUCCEEDED for state in expect(case))
    assert workflow.state is (WorkflowState.SUCCEEDED if passed else WorkflowState.FAILED)


def draw_event(rng: Random, workflow: Workflow) -> Event:
    step = rng.choice(workflow.steps)
    kind = rng.randrange(12)
    if kind < 6:
        return answer(step, rng.random() < 0.7)
    if kind == 6:
        return JobEnded(step.index, step.attempt, rng.choice(ENDINGS), DIGEST)
    if kind == 7:
        return Retried(step.index)
    if kind == 8:
        return Skipped(step.index, "because")
    if kind == 9:
        return Denied(step.index, step.digest, skip=True)
    return CancelRequested() if rng.random() < 0.1 else ApproveAllSet(on=rng.random() < 0.5)


@settings(max_examples=400, deadline=None)
@given(cases(), st.randoms(use_true_random=False), st.booleans())
def test_no_step_starts_twice_or_early_and_nothing_is_stuck(
    case: Case, rng: Random, held: bool
) -> None:
    blocked = ("component:c0",) if held else ()
    progress = decide(case.workflow, blocked)
    workflow = progress.workflow
    started = [(m.step, workflow.steps[m.step].attempt) for m in progress.effects]
    for _ in range(120):
        try:
            changed = apply_event(workflow, draw_event(rng, workflow))
        except Problem:
            continue
        progress = decide(changed, blocked)
        workflow = progress.workflow
        for move in progress.effects:
            if move.effect is Effect.CANCEL_JOB:
                continue
            step = workflow.steps[move.step]
            assert all(workflow.steps[need].state.lets_pass for need in step.needs)
            assert not (step.mutating and set(step.lanes) & set(blocked))
            started.append((move.step, step.attempt))
        check_not_stuck(workflow, blocked)

    assert len(started) == len(set(started))


def check_not_stuck(workflow: Workflow, blocked: tuple[str, ...]) -> None:
    active = any(step.state is StepState.ACTIVE for step in workflow.steps)
    ready = [
        step
        for step in workflow.steps
        if step.state is StepState.PENDING
        and all(workflow.steps[need].state.lets_pass for need in step.needs)
    ]
    if workflow.state is WorkflowState.RUNNING:
        assert active or any(set(step.lanes) & set(blocked) for step in ready)
    else:
        assert not active
        assert not ready or workflow.state is WorkflowState.CANCELLED
