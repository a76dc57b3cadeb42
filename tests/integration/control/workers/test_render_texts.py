"""Texts that cost much are rendered by workers, outside of transactions; cheap ones in place."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, TypeVar, TypeVarTuple

import pytest

from exclave.base.errors import InvalidInput
from exclave.control.background.timers import UNMOVED, move_unmoved
from exclave.control.chores import RowWorker
from exclave.control.deps import Deps
from exclave.control.idempotency import AlreadyDone, answer_once
from exclave.control.installs import actions, installs, state_views
from exclave.control.progress.prepare_steps import prepare, prepare_all
from exclave.control.runtime.postponed_steps import Postponed
from exclave.control.stacks import stacks
from exclave.control.workers.pool import InlineWorkers, TookTooLong
from exclave.control.workflows import workflows
from exclave.domain.identity import InstallId, QueueId
from exclave.domain.workflows import StepState, WorkflowId, WorkflowState
from exclave.wire.actions import RunAction
from exclave.wire.installs import NewInstall
from tests.integration.control.conftest import World
from tests.integration.control.install_changes_kit import set_inputs
from tests.support.install_fixture import InstallFixture
from tests.support.installs import ACTION, make_app, make_app_install
from tests.support.world import enrol_fake_runner

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

HEAVY = "{{ $n := 0 }}{{ range until 20000 }}{{ $n = add $n 1 }}{{ end }}{{ $n }}"
"""About 130,000 steps."""


class WatchedWorkers(InlineWorkers):
    """Does what it is asked for; first something may happen, or all of it takes too long."""

    def __init__(self) -> None:
        super().__init__()
        self.first: Callable[[], Awaitable[object]] | None = None
        self.is_slow = False

    async def run(self, org: str, function: Callable[[*Ts], T], *args: *Ts, seconds: float) -> T:
        if self.first is not None:
            first, self.first = self.first, None
            await first()
        if self.is_slow:
            raise TookTooLong("the work took longer than 5 s")
        return await super().run(org, function, *args, seconds=seconds)


@pytest.fixture
def workers() -> WatchedWorkers:
    return WatchedWorkers()


@pytest.fixture
def deps(deps: Deps, workers: WatchedWorkers) -> Deps:
    return replace(deps, workers=workers)


async def make_life(world: World, text: str, **more: Any) -> InstallFixture:
    """Make an install of an app whose action has a text, with a runner."""
    step = {"name": "ask", "inline_contents": "true", "env_vars": {"TEXT": text}}
    app = await make_app(world.deps, world.user, action={**ACTION, "steps": [step]}, **more)
    made = await make_app_install(world.deps, world.user, app, "acme", provision=False)
    peer = await enrol_fake_runner(world.deps, world.user, QueueId(made.id))
    return InstallFixture(world.deps, world.user, made.id, app, peer, peer)


async def run_action(life: InstallFixture) -> WorkflowId:
    """Run it up to the step with the text."""
    wish = RunAction(action="check")
    begun = await actions.run_action(life.deps, life.user, InstallId(life.install), wish)
    await life.run()
    return WorkflowId(begun.id)


async def step_state(life: InstallFixture, workflow: str) -> StepState:
    *_, step = (await life.steps(workflow)).values()
    return step.state


async def test_cheap_labels_need_no_worker(world: World, workers: WatchedWorkers) -> None:
    await make_app(world.deps, world.user, labels={"place": "at-{{ .nuon.install.name }}"})

    made = await make_app_install(world.deps, world.user, "shop")

    assert made.labels == {"place": "at-acme"}
    assert workers.tally.calls == 0


async def test_expensive_labels_are_rendered_by_one_call_of_a_worker(
    world: World, workers: WatchedWorkers
) -> None:
    labels = {
        "id": HEAVY + "-{{ .nuon.install.id }}",
        "name": HEAVY + "-{{ .nuon.install.name }}",
        "cheap": "{{ .nuon.app.name }}",
    }
    await make_app(world.deps, world.user, labels=labels)

    made = await make_app_install(world.deps, world.user, "shop")

    assert made.labels == {"id": f"20000-{made.id}", "name": "20000-acme", "cheap": "shop"}
    assert workers.tally.calls == 1


async def test_all_labels_share_one_budget(world: World, workers: WatchedWorkers) -> None:
    labels = {f"l{each}": f"{HEAVY}{each}{{{{ .nuon.name }}}}" for each in range(30)}
    await make_app(world.deps, world.user, labels=labels)

    with pytest.raises(InvalidInput, match="1000000 steps"):
        await make_app_install(world.deps, world.user, "shop")

    assert workers.tally.calls == 1
    page = await installs.list_installs(world.deps, world.user, "", 10)
    assert [each.name for each in page.items] == ["prod"]


async def test_a_key_is_spent_with_the_attempt_that_is_kept(world: World) -> None:
    await make_app(world.deps, world.user, labels={"n": HEAVY + "{{ .nuon.name }}"})
    wish = NewInstall(name="acme", app="shop", inputs={"domain": "acme.test"})

    async def create(deps: Deps) -> tuple[int, Any]:
        made = await installs.create_install(deps, world.user, wish)
        return 201, {"id": made.id}

    first = await answer_once(world.deps, world.user, "k", "r", create, keep=False)

    assert first[0] == 201
    with pytest.raises(AlreadyDone):
        await answer_once(world.deps, world.user, "k", "r", create, keep=False)


async def test_an_expensive_readme_is_rendered_by_a_worker(
    world: World, workers: WatchedWorkers
) -> None:
    await make_app(world.deps, world.user, readme=HEAVY + " {{ .nuon.install.name }}")
    made = await make_app_install(world.deps, world.user, "shop")

    shown = await state_views.show_readme(world.deps, world.user, InstallId(made.id))

    assert (shown.text, shown.rendered) == ("20000 acme", True)
    assert workers.tally.calls == 1


async def test_a_readme_that_takes_too_long_stays_as_it_is(
    world: World, workers: WatchedWorkers
) -> None:
    text = HEAVY + " {{ .nuon.install.name }}"
    await make_app(world.deps, world.user, readme=text)
    made = await make_app_install(world.deps, world.user, "shop")
    workers.is_slow = True

    shown = await state_views.show_readme(world.deps, world.user, InstallId(made.id))

    assert (shown.text, shown.rendered) == (text, False)
    assert "longer than 5 s" in shown.warnings[0]


async def test_expensive_names_of_secrets_reach_the_stack(
    world: World, workers: WatchedWorkers
) -> None:
    secret = {"name": "db", "description": HEAVY + " {{ .nuon.install.name }}", "required": True}
    await make_app(world.deps, world.user, secrets=[secret])
    made = await make_app_install(world.deps, world.user, "shop")

    created = await stacks.create_stack(world.deps, world.user, InstallId(made.id))
    code = created.files[0].url.split("/")[-2]
    script = await stacks.fetch_file(world.deps, code, "local.py")

    assert "20000 acme" in created.files[0].content
    assert "20000 acme" in script.content
    assert workers.tally.calls == 2


async def test_a_step_with_expensive_texts_waits_until_it_is_prepared(world: World) -> None:
    life = await make_life(world, HEAVY + " {{ .nuon.inputs.inputs.domain }}")

    workflow = await run_action(life)

    assert await step_state(life, workflow) is StepState.PENDING
    assert (await life.show(workflow)).state is WorkflowState.RUNNING

    await prepare_all(world.deps, world.user.org)
    assert await step_state(life, workflow) is StepState.ACTIVE
    await life.run()

    assert (await life.show(workflow)).state is WorkflowState.SUCCEEDED
    assert life.specs["action manual ask"].steps[0].env == {"TEXT": "20000 acme.test"}
    assert world.deps.postponed.list_orgs() == []


async def test_a_step_with_cheap_texts_begins_at_once(
    world: World, workers: WatchedWorkers
) -> None:
    life = await make_life(world, "{{ .nuon.inputs.inputs.domain }}")

    workflow = await run_action(life)

    assert (await life.show(workflow)).state is WorkflowState.SUCCEEDED
    assert workers.tally.calls == 0


async def test_a_step_is_never_made_of_an_older_state(
    world: World, workers: WatchedWorkers
) -> None:
    life = await make_life(world, HEAVY + " {{ .nuon.inputs.inputs.domain }}")
    await run_action(life)
    install = InstallId(life.install)
    workers.first = lambda: set_inputs(world, install, values={"domain": "new.test"})

    await prepare_all(world.deps, world.user.org)
    await life.run()

    assert life.specs["action manual ask"].steps[0].env == {"TEXT": "20000 new.test"}


async def test_a_postponed_step_can_be_cancelled_while_it_is_prepared(
    world: World, workers: WatchedWorkers
) -> None:
    life = await make_life(world, HEAVY + " {{ .nuon.name }}")
    workflow = await run_action(life)
    workers.first = lambda: workflows.cancel_workflow(world.deps, world.user, workflow)

    await prepare_all(world.deps, world.user.org)
    await life.run()

    assert (await life.show(workflow)).state is WorkflowState.CANCELLED
    assert "action manual ask" not in life.ran


async def test_two_servers_prepare_one_job(world: World, workers: WatchedWorkers) -> None:
    life = await make_life(world, HEAVY + " {{ .nuon.name }}")
    workflow = await run_action(life)
    workers.first = lambda: prepare(world.deps, world.user.org, workflow)

    await prepare_all(world.deps, world.user.org)
    await life.run()

    assert life.ran.count("action manual ask") == 1
    assert (await life.show(workflow)).state is WorkflowState.SUCCEEDED


async def test_what_a_crashed_server_had_postponed_is_found_again(world: World) -> None:
    life = await make_life(world, HEAVY + " {{ .nuon.name }}")
    workflow = await run_action(life)
    restarted = replace(world.deps, postponed=Postponed())

    world.clock.advance(61)
    await move_unmoved(restarted, RowWorker(restarted, UNMOVED))
    await prepare_all(restarted, world.user.org)
    await life.run()

    assert (await life.show(workflow)).state is WorkflowState.SUCCEEDED


async def test_a_step_that_costs_more_than_anything_may_fails(world: World) -> None:
    life = await make_life(world, HEAVY * 10 + " {{ .nuon.name }}")
    workflow = await run_action(life)

    await prepare_all(world.deps, world.user.org)

    steps = await life.steps(workflow)
    (failed,) = (step for step in steps.values() if step.state is StepState.FAILED)
    assert failed.reason == "render_failed"
    assert "1000000 steps" in failed.message


async def test_a_step_that_takes_too_long_to_render_fails(
    world: World, workers: WatchedWorkers
) -> None:
    life = await make_life(world, HEAVY + " {{ .nuon.name }}")
    workflow = await run_action(life)
    workers.is_slow = True

    await prepare_all(world.deps, world.user.org)

    assert await step_state(life, workflow) is StepState.FAILED


async def test_expensive_commands_are_prepared_too(world: World, workers: WatchedWorkers) -> None:
    steps = [
        {"name": f"s{number}", "command": f"echo '{HEAVY}' {{{{ .nuon.name }}}} {number}"}
        for number in range(7)
    ]
    app = await make_app(world.deps, world.user, action={**ACTION, "steps": steps})
    made = await make_app_install(world.deps, world.user, app, "acme", provision=False)
    peer = await enrol_fake_runner(world.deps, world.user, QueueId(made.id))
    life = InstallFixture(world.deps, world.user, made.id, app, peer, peer)
    await run_action(life)

    await prepare_all(world.deps, world.user.org)
    await life.run()

    spec = life.specs["action manual s0"]
    assert [step.argv for step in spec.steps] == [
        ["echo", "20000", "acme", str(number)] for number in range(7)
    ]
    assert workers.tally.calls == 1
