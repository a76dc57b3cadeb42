"""Four eyes: nothing that one person does alone gets past a second one, by any route."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

import pytest

from exclave.base.errors import Conflict, Forbidden, NotFound
from exclave.control import four_eyes
from exclave.control.access import authenticate_user
from exclave.control.audit import list_audit
from exclave.control.deps import Deps
from exclave.control.installs import (
    actions,
    config_files,
    inputs,
    installs,
    scheduler,
    upgrades,
    workflow_requests,
)
from exclave.control.orgs import accounts
from exclave.control.workflows import workflows
from exclave.domain.four_eyes import SecondPersonNeeded
from exclave.domain.identity import InstallId, Role, TokenId, User
from exclave.domain.installs import ManagedBy
from exclave.domain.workflows import StepState, WorkflowId, WorkflowState
from exclave.wire.actions import RunAction
from exclave.wire.identity import GrantModel, NewToken
from exclave.wire.installs import (
    NewInstall,
    SetInputs,
    StartWork,
    SyncInstalls,
    Upgrade,
    WorkflowKind,
)
from exclave.wire.specs import ScriptSpec
from exclave.wire.workflows import Approve, Deny
from tests.integration.control.conftest import World
from tests.support.install_fixture import InstallFixture, make_install_fixture, provision
from tests.support.installs import make_app, make_app_install
from tests.support.world import ManualClock, gate, job, run_workflow

SCRIPT = ScriptSpec.model_validate({"steps": [{"name": "s", "script": "id"}]})


@dataclass(frozen=True)
class People:
    """Three admins of one org."""

    ada: User
    bob: User
    eve: User


async def mint(deps: Deps, maker: User, name: str, role: Role = Role.ADMIN) -> User:
    wish = NewToken(name=name, account=name, grants=[GrantModel(role=role)])
    made = await accounts.create_token(deps, maker, wish)
    return await authenticate_user(deps, made.token)


async def meet(deps: Deps, ada: User, *, on: bool = True) -> People:
    bob, eve = await mint(deps, ada, "bob"), await mint(deps, ada, "eve")
    if on:
        await four_eyes.set_four_eyes(deps, ada, on=True)
    return People(*(replace(each, four_eyes=on) for each in (ada, bob, eve)))


async def approve(deps: Deps, user: User, workflow: str, step: str) -> None:
    shown = await workflows.show_workflow(deps, user, WorkflowId(workflow))
    digest = next(each.digest for each in shown.steps if each.name == step)
    await workflows.approve_step(deps, user, WorkflowId(workflow), step, Approve(digest=digest))


async def test_nobody_approves_what_they_started(world: World) -> None:
    people = await meet(world.deps, world.user)
    flow = await run_workflow(world.deps, people.ada, world.queue, gate("ask"), job("x", "ask"))

    with pytest.raises(SecondPersonNeeded, match="you started"):
        await approve(world.deps, people.ada, flow.id, "ask")
    await approve(world.deps, people.bob, flow.id, "ask")

    shown = await workflows.show_workflow(world.deps, people.ada, WorkflowId(flow.id))
    assert (shown.steps[0].state, shown.steps[0].answered_by) == (StepState.SUCCEEDED, "bob")


async def test_nobody_approves_the_plans_of_a_config_that_they_synced(
    deps: Deps, user: User
) -> None:
    life, _ = await make_install_fixture(deps, user, approve_all=False, provision=False)
    people = await meet(deps, user)
    life.user = people.bob
    workflow = await life.start(WorkflowKind.REPROVISION)
    await life.report()
    await life.run()

    with pytest.raises(SecondPersonNeeded, match="you synced"):
        await approve(deps, people.ada, workflow, "sandbox-approve")
    with pytest.raises(SecondPersonNeeded, match="you started"):
        await approve(deps, people.bob, workflow, "sandbox-approve")
    await approve(deps, people.eve, workflow, "sandbox-approve")


async def test_a_token_made_with_four_eyes_is_its_maker_until_somebody_else_vouches(
    world: World,
) -> None:
    deps, people = world.deps, await meet(world.deps, world.user)
    puppet = await mint(deps, people.ada, "puppet")
    puppet_of_puppet = await mint(deps, puppet, "second-puppet")
    as_bob = await mint(deps, people.ada, "bob")
    flow = await run_workflow(deps, people.ada, world.queue, gate("ask"))

    for user in (puppet, puppet_of_puppet, as_bob):
        with pytest.raises(SecondPersonNeeded):
            await approve(deps, user, flow.id, "ask")
    for user in (people.ada, puppet):
        with pytest.raises(SecondPersonNeeded):
            await four_eyes.confirm_token(deps, user, puppet.token)
    shown = (await accounts.list_tokens(deps, people.ada, "", 50)).items
    assert {each.name: each.counts_as for each in shown if each.counts_as} == {
        "puppet": "founder",
        "second-puppet": "founder",
        "bob": "founder",
    }
    await four_eyes.confirm_token(deps, people.bob, puppet.token)

    found = await accounts.list_tokens(deps, people.ada, "", 50)
    assert next(each for each in found.items if each.name == "puppet").counts_as is None
    await approve(deps, replace(puppet, acts_as=None), flow.id, "ask")


async def test_a_script_of_ones_own_has_to_wait_for_a_gate(world: World) -> None:
    deps, people = world.deps, await meet(world.deps, world.user)
    before = job("before", spec=SCRIPT)
    behind = job("behind", "ask", spec=SCRIPT)
    change = job("change", lanes=["sandbox"], mutating=True)

    with pytest.raises(SecondPersonNeeded, match="`before`"):
        await run_workflow(deps, people.ada, world.queue, before, gate("ask"), behind)
    with pytest.raises(SecondPersonNeeded, match="`change`"):
        await run_workflow(deps, people.ada, world.queue, change)
    flow = await run_workflow(deps, people.ada, world.queue, gate("ask"), behind)

    with pytest.raises(Conflict, match="answered, not skipped"):
        await workflows.skip_step(deps, people.ada, WorkflowId(flow.id), "ask", "in a hurry")
    with pytest.raises(Conflict, match="has not ended"):
        await workflows.retry_step(deps, people.ada, WorkflowId(flow.id), "ask")
    assert flow.steps[1].state is StepState.PENDING


async def test_a_denied_gate_asks_again_and_its_starter_still_cannot_approve_it(
    world: World,
) -> None:
    deps, people = world.deps, await meet(world.deps, world.user)
    flow = await run_workflow(
        deps, people.ada, world.queue, gate("ask"), job("x", "ask", spec=SCRIPT)
    )
    key = WorkflowId(flow.id)
    await workflows.deny_step(deps, people.ada, key, "ask", Deny(digest=flow.steps[0].digest))

    await workflows.retry_step(deps, people.ada, key, "ask")

    with pytest.raises(SecondPersonNeeded):
        await approve(deps, people.ada, flow.id, "ask")


Route = Callable[[Deps, User, InstallId, WorkflowId], Awaitable[object]]
APPROVE_ALL: dict[str, Route] = {
    "workflow": lambda deps, user, install, _: run_workflow(
        deps, user, install, gate("ask"), approve_all=True  # type: ignore[arg-type]
    ),
    "running workflow": lambda deps, user, _, flow: workflows.set_approve_all(
        deps, user, flow, on=True
    ),
    "install": lambda deps, user, install, _: installs.set_approve_all(
        deps, user, install, on=True
    ),
    "new install": lambda deps, user, *_: installs.create_install(
        deps, user, NewInstall(name="new", app="shop", approve_all=True)
    ),
    "inputs": lambda deps, user, install, _: inputs.set_inputs(
        deps, user, install, SetInputs(values={"replicas": "3"}, approve_all=True)
    ),
    "upgrade": lambda deps, user, install, _: upgrades.upgrade_install(
        deps, user, install, Upgrade(approve_all=True)
    ),
    "work": lambda deps, user, install, _: workflow_requests.start_work(
        deps, user, install, StartWork(kind=WorkflowKind.DEPLOY_ALL, approve_all=True)
    ),
    "install files, approve-all": lambda deps, user, *_: config_files.sync_installs(
        deps, user, _file("approve-all")
    ),
    "install files, auto": lambda deps, user, *_: config_files.sync_installs(
        deps, user, _file("auto")
    ),
}  # fmt: skip


def _file(option: str) -> SyncInstalls:
    one = {"name": "new", "approval_option": option, "inputs": {"domain": "x.test"}}
    return SyncInstalls.model_validate({"app": "shop", "installs": [one]})


@pytest.mark.parametrize("route", list(APPROVE_ALL))
async def test_automatic_approval_is_refused_by_every_route(world: World, route: str) -> None:
    deps = world.deps
    await make_app(deps, world.user)
    made = await make_app_install(deps, world.user, "shop")
    flow = await run_workflow(deps, world.user, world.queue, gate("ask"))
    people = await meet(deps, world.user)

    with pytest.raises(SecondPersonNeeded, match="four eyes"):
        await APPROVE_ALL[route](deps, people.ada, InstallId(made.id), WorkflowId(flow.id))


async def test_automatic_approval_that_was_on_before_counts_no_more(deps: Deps, user: User) -> None:
    life, running = await make_install_fixture(deps, user, approve_all=True)
    await meet(deps, user)
    await life.report()
    await life.run()

    steps = await life.steps(running)
    assert steps["sandbox-approve"].state is StepState.ACTIVE
    assert not any(name.startswith("apply") for name in life.ran)
    started = await life.start(WorkflowKind.REPROVISION)
    assert (await life.show(started)).approve_all is False


async def test_policies_that_pass_approve_nothing_with_four_eyes(deps: Deps, user: User) -> None:
    life = await provision(deps, user)
    await installs.set_managed_by(deps, user, InstallId(life.install), ManagedBy.CONFIG)
    config = {"name": "acme", "approval_option": "auto"}
    wish = SyncInstalls.model_validate({"app": life.app, "installs": [config]})
    await config_files.sync_installs(deps, user, wish)
    before = await life.start(WorkflowKind.DEPLOY, components=["page"])
    await meet(deps, user)

    after = await life.start(WorkflowKind.DEPLOY, components=["page"])
    await life.run()

    for workflow in (before, after):
        steps = await life.steps(workflow)
        assert steps["page.approve"].reason != "policies"
    assert not any(name.startswith("apply") for name in life.ran)


async def _start_action(deps: Deps, user: User, life: InstallFixture) -> str:
    wish = RunAction(action="check")
    return (await actions.run_action(deps, user, InstallId(life.install), wish)).id


async def test_an_action_waits_for_somebody_who_neither_started_nor_wrote_it(
    deps: Deps, user: User
) -> None:
    life = await provision(deps, user)
    people = await meet(deps, user)

    workflow = await _start_action(deps, people.bob, life)
    await life.run()

    assert not any(name.startswith("action") for name in life.ran)
    for one in (people.ada, people.bob):
        with pytest.raises(SecondPersonNeeded):
            await approve(deps, one, workflow, "scripts-approve")
    await approve(deps, people.eve, workflow, "scripts-approve")
    await life.run()
    assert "action manual ask" in life.ran
    assert (await life.show(workflow)).state is WorkflowState.SUCCEEDED


async def test_hooks_wait_for_the_same_gate_although_a_plan_has_no_changes(
    deps: Deps, user: User
) -> None:
    life = await provision(deps, user)
    await meet(deps, user)

    workflow = await life.start(WorkflowKind.DEPLOY, components=["page"])

    steps = await life.steps(workflow)
    hooks = [step for step in steps.values() if step.name.startswith("post-deploy-component")]
    assert [step.needs[-1] for step in hooks] == ["scripts-approve"]


async def test_a_schedule_asks_only_if_nobody_but_its_author_put_the_config_there(
    deps: Deps, user: User
) -> None:
    life = await provision(deps, user)
    people = await meet(deps, user)
    clock = deps.clock
    assert isinstance(clock, ManualClock)
    clock.advance(15 * 60)
    await scheduler.fire_schedules(deps)
    await life.run()

    assert not any(name.startswith("action cron") for name in life.ran)
    found = await workflows.list_workflows(
        deps, user, cursor="", limit=10, queue=life.install, state="running"
    )
    waiting = [each.id for each in found.items if each.created_by == "schedule"]
    with pytest.raises(SecondPersonNeeded):
        await approve(deps, people.ada, waiting[0], "scripts-approve")
    await approve(deps, people.bob, waiting[0], "scripts-approve")
    await life.run()
    assert any(name.startswith("action cron") for name in life.ran)


async def test_switching_off_takes_two_admins_and_switching_on_one(world: World) -> None:
    deps, people = world.deps, await meet(world.deps, world.user, on=False)
    assert (await four_eyes.set_four_eyes(deps, people.ada, on=True)).on
    puppet = await mint(deps, people.ada, "puppet")

    asked = await four_eyes.set_four_eyes(deps, people.ada, on=False)
    again = await four_eyes.set_four_eyes(deps, people.ada, on=False)
    by_puppet = await four_eyes.set_four_eyes(deps, puppet, on=False)
    world.clock.advance(24 * 3600 + 1)
    late = await four_eyes.set_four_eyes(deps, people.bob, on=False)
    taken_back = await four_eyes.set_four_eyes(deps, people.eve, on=True)
    await four_eyes.set_four_eyes(deps, people.ada, on=False)
    done = await four_eyes.set_four_eyes(deps, people.bob, on=False)

    assert [each.on for each in (asked, again, by_puppet, late, taken_back, done)] == [
        True,
        True,
        True,
        True,
        True,
        False,
    ]
    requests = [asked.off_requested_by, by_puppet.off_requested_by, late.off_requested_by]
    assert requests == ["founder", "founder", "bob"]
    assert taken_back.off_requested_by is None
    trail = [entry.action for entry in (await list_audit(deps, people.ada, "", 100)).items]
    assert trail.count("four_eyes_off_requested") == 3
    assert trail.count("four_eyes_off") == 1


async def test_a_lone_admin_cannot_lock_the_org_and_the_operator_can_unlock_it(
    world: World,
) -> None:
    deps = world.deps
    with pytest.raises(Conflict, match="two admins"):
        await four_eyes.set_four_eyes(deps, world.user, on=True)
    operator = await mint(deps, world.user, "op", Role.OPERATOR)
    with pytest.raises(Forbidden):
        await four_eyes.set_four_eyes(deps, operator, on=True)
    await mint(deps, world.user, "bob")
    await four_eyes.set_four_eyes(deps, world.user, on=True)

    await deps.db.write(lambda tx: four_eyes.force_four_eyes(tx, deps, "acme", on=False))

    assert not (await four_eyes.show_four_eyes(deps, operator)).on


async def test_without_four_eyes_an_operator_needs_a_gate_or_the_right_to_approve(
    world: World,
) -> None:
    deps = world.deps
    operator = await mint(deps, world.user, "op", Role.OPERATOR)

    with pytest.raises(Forbidden, match="right to approve") as caught:
        await run_workflow(deps, operator, world.queue, job("x", spec=SCRIPT))
    assert "gate" in caught.value.advice
    flow = await run_workflow(
        deps, operator, world.queue, gate("ask"), job("x", "ask", spec=SCRIPT)
    )
    with pytest.raises(Forbidden):
        await approve(deps, operator, flow.id, "ask")
    assert await run_workflow(deps, world.user, world.queue, job("x", spec=SCRIPT))


async def test_an_operator_runs_an_action_as_it_was_written_and_not_otherwise(
    deps: Deps, user: User
) -> None:
    life = await provision(deps, user)
    operator = await mint(deps, user, "op", Role.OPERATOR)

    await _start_action(deps, operator, life)
    for wish in (
        RunAction(action="check", env={"BASH_ENV": "/tmp/x"}),  # noqa: S108 - never read
        RunAction(action="check", role="admin"),
    ):
        with pytest.raises(Forbidden):
            await actions.run_action(deps, operator, InstallId(life.install), wish)


async def test_a_token_of_nobody_is_not_confirmed(world: World) -> None:
    with pytest.raises(NotFound, match="no such token"):
        await four_eyes.confirm_token(world.deps, world.user, TokenId("tok_x"))
