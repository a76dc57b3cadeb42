"""Graphs as large as they may be: the same decisions as for small ones, each need looked at once."""

import random
from collections.abc import Sequence

import pytest

from exclave.base.errors import InvalidInput
from exclave.domain.lanes import conflict, conflicts_any
from exclave.domain.workflows import (
    Step,
    StepKind,
    StepState,
    Workflow,
    WorkflowId,
    WorkflowState,
)
from exclave.flow.decide import decide
from exclave.flow.events import find_dependents
from exclave.flow.graph import resolve_needs

SIZE = 500


def make_gates(needs: Sequence[tuple[int, ...]]) -> Workflow:
    steps = tuple(
        Step(index, f"s{index}", StepKind.GATE, needs=each) for index, each in enumerate(needs)
    )
    return Workflow(WorkflowId("w"), WorkflowState.RUNNING, steps, approve_all=True)


def make_needs(seed: int, size: int = 40) -> list[tuple[int, ...]]:
    """Make a graph without circles whose steps stand in any order."""
    dice = random.Random(seed)
    order = list(range(size))
    dice.shuffle(order)
    needs: list[tuple[int, ...]] = [()] * size
    for at, index in enumerate(order):
        needs[index] = tuple(sorted(dice.sample(order[:at], min(at, dice.randrange(4)))))
    return needs


@pytest.mark.parametrize("backwards", [False, True])
def test_a_long_chain_of_gates_is_passed_at_once(backwards: bool) -> None:
    step = 1 if backwards else -1
    needs = [(index + step,) if 0 <= index + step < SIZE else () for index in range(SIZE)]

    progress = decide(make_gates(needs))

    assert progress.workflow.state is WorkflowState.SUCCEEDED


@pytest.mark.parametrize("seed", range(20))
def test_gates_pass_in_any_order_of_the_list_up_to_what_holds_them_up(seed: int) -> None:
    needs = make_needs(seed)
    workflow = make_gates(needs)
    held = seed % len(needs)
    steps = list(workflow.steps)
    steps[held] = steps[held]._replace(kind=StepKind.WAIT)
    workflow = Workflow(workflow.id, workflow.state, tuple(steps), approve_all=True)

    progress = decide(workflow)

    behind = find_dependents(steps, held)
    for step in progress.workflow.steps:
        if step.index == held:
            assert step.state is StepState.ACTIVE
        elif step.index in behind:
            assert step.state is StepState.PENDING
        else:
            assert step.state is StepState.SUCCEEDED
    assert decide(progress.workflow).effects == ()


@pytest.mark.parametrize("seed", range(20))
def test_dependents_are_all_steps_from_which_a_path_leads_back(seed: int) -> None:
    needs = make_needs(seed)
    steps = make_gates(needs).steps

    def leads(index: int, to: int) -> bool:
        return to in needs[index] or any(leads(each, to) for each in needs[index])

    for index in range(0, len(needs), 7):
        expected = {each for each in range(len(needs)) if leads(each, index)}
        assert find_dependents(steps, index) == expected


def test_a_circle_in_a_large_graph_is_named() -> None:
    names = [f"s{index}" for index in range(SIZE)]
    needs = {name: [names[at - 1]] if at else [] for at, name in enumerate(names)}
    needs["s100"] = ["s99", "s102"]

    with pytest.raises(InvalidInput, match="circle: s100 → s102 → s101 → s100"):
        resolve_needs(needs)


@pytest.mark.parametrize("seed", range(50))
def test_sets_of_lanes_conflict_if_any_two_lanes_do(seed: int) -> None:
    dice = random.Random(seed)
    lanes = ["sandbox", "component:a", "component:b", "action:a", "action:c"]
    one = dice.sample(lanes, dice.randrange(4))
    other = dice.sample(lanes, dice.randrange(4))

    expected = any(conflict(lane, taken) for lane in one for taken in other)

    assert conflicts_any(one, other) is expected
