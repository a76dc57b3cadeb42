"""The step graph of each workflow type: order, hooks, parallel work, what is left out."""

import itertools

import pytest

from exclave.base.errors import InvalidInput
from exclave.domain.intents import RunAction, StoredPlan, SyncSecrets
from exclave.domain.workflows import StepKind, WorkflowKind
from exclave.flow.graph import resolve_needs
from exclave.flow.plans.drafts import Draft
from exclave.flow.plans.outline import Component, Hook, Outline, Request, RunbookStep
from exclave.flow.plans.types import plan_steps

DIAMOND = (
    Component("net", deployed=True),
    Component("db", ("net",), deployed=True),
    Component("cache", ("net",), deployed=True),
    Component("api", ("cache", "db"), deployed=True),
)
LIFE = Outline(DIAMOND, sandbox_deployed=True, has_secrets=True)


def draw(kind: WorkflowKind, outline: Outline = LIFE, **wish: object) -> dict[str, Draft]:
    drafts = plan_steps(kind, outline, Request(**wish))  # type: ignore[arg-type]
    resolve_needs({draft.name: list(draft.needs) for draft in drafts})
    return {draft.name: draft for draft in drafts}


def comes_before(steps: dict[str, Draft], first: str, later: str) -> bool:
    todo, seen = [later], set[str]()
    while todo:
        for need in steps[todo.pop()].needs:
            if need == first:
                return True
            if need not in seen:
                seen.add(need)
                todo.append(need)
    return False


def test_provision_waits_for_stack_and_runner_then_goes_through_everything() -> None:
    hooks = (
        Hook("a", "pre-provision"),
        Hook("b", "post-provision"),
        Hook("c", "pre-secrets-sync"),
        Hook("d", "post-secrets-sync"),
        Hook("e", "pre-deploy-all-components"),
        Hook("f", "post-deploy-all-components"),
        Hook("g", "post-provision-sandbox"),
    )
    outline = Outline((Component("net"),), hooks=hooks, has_secrets=True)

    steps = draw(WorkflowKind.PROVISION, outline)

    assert list(steps) == [
        "stack",
        "runner",
        "pre-provision.a",
        "sandbox-plan",
        "sandbox-approve",
        "sandbox-apply",
        "post-provision-sandbox.g",
        "pre-secrets-sync.c",
        "secrets",
        "post-secrets-sync.d",
        "pre-deploy-all-components.e",
        "net.plan",
        "net.approve",
        "net.apply",
        "post-deploy-all-components.f",
        "post-provision.b",
    ]
    assert steps["stack"].kind is StepKind.WAIT
    assert steps["net.approve"].kind is StepKind.GATE
    names = list(steps)
    assert all(comes_before(steps, a, b) for a, b in itertools.pairwise(names))


def test_independent_components_run_in_parallel_and_dependents_wait() -> None:
    steps = draw(WorkflowKind.DEPLOY_ALL)

    assert steps["db.plan"].needs == steps["cache.plan"].needs == ("net.apply",)
    assert set(steps["api.plan"].needs) == {"db.apply", "cache.apply"}
    assert not comes_before(steps, "db.apply", "cache.apply")


def test_teardown_goes_the_other_way() -> None:
    steps = draw(WorkflowKind.TEARDOWN_ALL)

    assert steps["net.destroy-plan"].needs == ("db.destroy-apply", "cache.destroy-apply")
    assert comes_before(steps, "api.destroy-apply", "db.destroy-plan")
    assert steps["api.destroy-plan"].needs == ("runner",)


def test_deprovision_takes_components_first_and_the_sandbox_last() -> None:
    hooks = (Hook("bye", "post-deprovision"), Hook("save", "pre-teardown-component", "db"))
    steps = draw(WorkflowKind.DEPROVISION, Outline(DIAMOND, hooks, sandbox_deployed=True))

    assert comes_before(steps, "net.destroy-apply", "sandbox-destroy-plan")
    assert comes_before(steps, "sandbox-destroy-apply", "post-deprovision.bye")
    assert steps["db.destroy-plan"].needs == ("pre-teardown-component.db.save",)


@pytest.mark.parametrize("kind", [WorkflowKind.DEPROVISION, WorkflowKind.DEPROVISION_SANDBOX])
def test_copies_of_secrets_leave_the_cluster_before_the_sandbox_goes(kind: WorkflowKind) -> None:
    outline = Outline(sandbox_deployed=True, copies_secrets=True, policies_deployed=True)

    steps = draw(kind, outline)

    assert comes_before(steps, "secrets-remove", "sandbox-destroy-plan")
    assert steps["secrets-remove"].lanes == ("secrets",)


@pytest.mark.parametrize(
    ("kind", "wish"),
    [
        (WorkflowKind.DEPLOY, {"components": ("db",)}),
        (WorkflowKind.DEPLOY_ALL, {}),
        (WorkflowKind.INPUT_UPDATE, {"components": ("db",)}),
    ],
)
def test_deploys_bring_copies_of_secrets_up_to_date_first(
    kind: WorkflowKind, wish: dict[str, object]
) -> None:
    copying = draw(kind, Outline(DIAMOND, copies_secrets=True), **wish)
    checking = draw(kind, Outline(DIAMOND, has_secrets=True), **wish)
    planning = draw(kind, Outline(DIAMOND, copies_secrets=True), **wish, plan_only=True)

    assert comes_before(copying, "secrets", "db.plan")
    assert "secrets" not in checking
    assert kind is WorkflowKind.INPUT_UPDATE or "secrets" not in planning


def test_secrets_are_copied_into_the_cluster_that_a_component_is_adopted_into() -> None:
    outline = Outline(DIAMOND, copies_secrets=True)

    adopting = draw(WorkflowKind.DEPLOY, outline, components=("db",), adopt=True)
    usual = draw(WorkflowKind.DEPLOY, outline, components=("db",))

    assert adopting["secrets"].intent == SyncSecrets(adopt=True)
    assert usual["secrets"].intent == SyncSecrets()


def test_a_rollback_goes_straight_to_its_component() -> None:
    outline = Outline(DIAMOND, copies_secrets=True)
    rolled = draw(
        WorkflowKind.DEPLOY, outline, components=("db",), rollback_to=StoredPlan("e", "d", "c")
    )

    assert list(rolled) == ["runner", "db.plan", "db.approve", "db.apply"]


def test_what_was_never_deployed_is_not_torn_down() -> None:
    outline = Outline((Component("net", deployed=True), Component("db", ("net",))))

    steps = draw(WorkflowKind.DEPROVISION, outline)

    assert list(steps) == ["runner", "net.destroy-plan", "net.destroy-approve", "net.destroy-apply"]


def test_deploying_one_component_leaves_the_others_alone_unless_asked() -> None:
    alone = draw(WorkflowKind.DEPLOY, components=("db",))
    followed = draw(WorkflowKind.DEPLOY, components=("db",), dependents=True)

    assert [name for name in alone if name.endswith(".plan")] == ["db.plan"]
    assert [name for name in followed if name.endswith(".plan")] == ["db.plan", "api.plan"]
    assert followed["api.plan"].needs == ("db.apply",)


def test_component_hooks_surround_their_component_in_order() -> None:
    hooks = (
        Hook("late", "pre-deploy-component", "db", 2),
        Hook("early", "pre-deploy-component", "db", 1),
        Hook("after", "post-deploy-component", "db"),
        Hook("every", "post-deploy-component"),
    )
    steps = draw(WorkflowKind.DEPLOY, Outline(DIAMOND, hooks), components=("db", "net"))

    chain = [name for name in steps if ".db." in name or name.startswith("db.")]
    assert chain == [
        "pre-deploy-component.db.early",
        "pre-deploy-component.db.late",
        "db.plan",
        "db.approve",
        "db.apply",
        "post-deploy-component.db.after",
        "post-deploy-component.db.every",
    ]
    assert "post-deploy-component.net.every" in steps


def test_a_teardown_that_others_still_need_is_refused() -> None:
    with pytest.raises(InvalidInput, match="api"):
        draw(WorkflowKind.TEARDOWN, components=("db",))

    steps = draw(WorkflowKind.TEARDOWN, components=("db",), dependents=True)
    assert comes_before(steps, "api.destroy-apply", "db.destroy-plan")


def test_a_sandbox_goes_only_when_nothing_stands_on_it() -> None:
    with pytest.raises(InvalidInput, match="net, db, cache, api"):
        draw(WorkflowKind.DEPROVISION_SANDBOX)

    bare = Outline((Component("net"),), sandbox_deployed=True)
    assert "sandbox-destroy-apply" in draw(WorkflowKind.DEPROVISION_SANDBOX, bare)


def test_an_input_change_redeploys_what_it_touches_or_everything_on_the_sandbox() -> None:
    some = draw(WorkflowKind.INPUT_UPDATE, components=("db", "api"))
    whole = draw(WorkflowKind.INPUT_UPDATE, sandbox=True)

    assert [n for n in some if n.endswith("plan")] == ["db.plan", "api.plan"]
    assert comes_before(whole, "sandbox-apply", "net.plan")
    assert comes_before(whole, "secrets", "net.plan")


def test_plans_alone_wait_for_nobody() -> None:
    steps = draw(WorkflowKind.DEPLOY_ALL, plan_only=True)

    assert {
        name: draft.needs for name, draft in steps.items() if name != "runner"
    } == dict.fromkeys(("net.plan", "db.plan", "cache.plan", "api.plan"), ("runner",))
    assert not any(draft.mutating for draft in steps.values())


def test_drift_is_looked_for_in_what_is_deployed() -> None:
    outline = Outline((Component("net", deployed=True), Component("db")), sandbox_deployed=True)

    steps = draw(WorkflowKind.DRIFT_SCAN, outline, components=("net", "db"), sandbox=True)

    assert set(steps) == {"runner", "sandbox-plan", "net.plan"}


def test_switched_off_components_are_left_out_and_nobody_waits_for_them() -> None:
    outline = Outline(
        (
            Component("net"),
            Component("extra", ("net",), enabled=False),
            Component("api", ("extra", "net")),
        )
    )

    steps = draw(WorkflowKind.DEPLOY_ALL, outline)

    assert "extra.plan" not in steps
    assert steps["api.plan"].needs == ("net.apply",)


def test_a_runbook_runs_in_the_order_in_which_it_is_written() -> None:
    book = (
        RunbookStep("check", "action", "health"),
        RunbookStep("roll", "component_deploy", "db", dependents=True),
        RunbookStep("own", "action"),
        RunbookStep("hold", "wait_for_event"),
    )
    steps = draw(WorkflowKind.RUNBOOK_RUN, runbook="restart", runbook_steps=book)

    assert steps["db.plan"].needs == ("runbook.check",)
    assert comes_before(steps, "api.apply", "runbook.own")
    assert steps["runbook.hold"].kind is StepKind.WAIT
    assert steps["runbook.own"].intent == RunAction("", "runbook", "", "restart", "own")


def test_unfinished_builds_are_waited_for_first() -> None:
    steps = draw(WorkflowKind.DEPLOY_ALL, Outline(DIAMOND, builds_pending=True))

    assert steps["runner"].needs == ("builds",)


def test_mutating_steps_hold_the_lane_of_their_part() -> None:
    hooks = (Hook("Say Hello!", "post-provision"),)
    steps = draw(WorkflowKind.PROVISION, Outline(DIAMOND, hooks))

    assert steps["sandbox-apply"].lanes == ("sandbox",)
    assert steps["db.apply"].lanes == ("component:db",)
    assert steps["post-provision.say-hello"].lanes == ("action:say-hello",)


def test_two_things_of_one_name_get_different_step_names() -> None:
    hooks = (Hook("x y", "post-provision"), Hook("x-y", "post-provision"))
    steps = draw(WorkflowKind.PROVISION, Outline((), hooks))

    assert [n for n in steps if n.startswith("post")] == [
        "post-provision.x-y",
        "post-provision.x-y-2",
    ]


@pytest.mark.parametrize("kind", list(WorkflowKind))
def test_every_type_draws_a_graph_without_cycles_whatever_the_app(kind: WorkflowKind) -> None:
    empty = Outline((), has_sandbox=False)

    steps = draw(kind, empty, action="x")

    assert "runner" in steps
