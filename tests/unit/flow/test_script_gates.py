"""The gate before scripts, and the steps that run before any gate."""

import pytest

from exclave.domain.intents import PlanPart, RunAction
from exclave.domain.workflows import StepKind, WorkflowKind
from exclave.flow.graph import find_unguarded
from exclave.flow.plans.drafts import Draft
from exclave.flow.plans.outline import Component, Hook, Outline, Request
from exclave.flow.plans.script_gates import (
    SCRIPTS_GATE,
    ask_for_every_plan,
    put_gate_before_scripts,
)
from exclave.flow.plans.types import plan_steps

HOOKS = (Hook("check", "post-deploy-component"), Hook("warm", "pre-provision"))
OUTLINE = Outline(
    components=(Component("api", auto_approve=True),), hooks=HOOKS, sandbox_auto_approve=True
)


def test_every_script_of_a_provision_needs_the_gate_and_nothing_else_does() -> None:
    drafts = put_gate_before_scripts(plan_steps(WorkflowKind.PROVISION, OUTLINE, Request()))

    gated = {draft.name for draft in drafts if SCRIPTS_GATE in draft.needs}
    scripts = {draft.name for draft in drafts if isinstance(draft.intent, RunAction)}
    assert gated == scripts == {"pre-provision.warm", "post-deploy-component.api.check"}
    assert drafts[0] == Draft(SCRIPTS_GATE, StepKind.GATE, ())


def test_a_workflow_without_scripts_gets_no_gate() -> None:
    drafts = plan_steps(WorkflowKind.DEPLOY_ALL, Outline((Component("api"),)), Request())

    assert put_gate_before_scripts(drafts) == drafts


def test_no_plan_is_approved_automatically() -> None:
    drafts = plan_steps(WorkflowKind.PROVISION, ask_for_every_plan(OUTLINE), Request())

    plans = [draft.intent for draft in drafts if isinstance(draft.intent, PlanPart)]
    assert plans
    assert not any(plan.auto for plan in plans)


@pytest.mark.parametrize(
    ("needs", "gates", "unguarded"),
    [
        ([()], [], [0]),
        ([(), (0,)], [0], []),
        ([(), (0,), (1,)], [0], []),
        ([(), (), (0, 1)], [0], [1]),
        ([(2,), (), ()], [1], [0, 2]),
        ([(1,), (2,), ()], [2], []),
    ],
)
def test_steps_before_or_beside_a_gate_are_unguarded(
    needs: list[tuple[int, ...]], gates: list[int], unguarded: list[int]
) -> None:
    acting = [index for index in range(len(needs)) if index not in gates]

    assert find_unguarded(needs, gates, acting) == unguarded
