"""A job that no runner can take says why, and what to do about it."""

from typing import Any

import pytest

from exclave.control.dispatch import executions, runners
from exclave.control.orgs.accounts import who_am_i
from exclave.control.workflows import jobs, workflows
from exclave.domain.identity import QueueId
from exclave.domain.jobs import JobId
from exclave.wire.jobs import Blocker
from exclave.wire.runner import Renew, Stats
from exclave.wire.workflows import StepReply, WorkflowReply
from tests.integration.control.conftest import World
from tests.integration.control.jobs_kit import make_script
from tests.support.installs import make_app, make_app_install
from tests.support.world import enrol_fake_runner, job, make_install, run_workflow


async def wait_on(world: World, queue: str) -> StepReply:
    flow = await run_workflow(world.deps, world.user, QueueId(queue), job("work"))
    (step,) = flow.steps
    return step


def get_job(flow: WorkflowReply, name: str) -> JobId:
    return JobId(next(step.job_id for step in flow.steps if step.name == name) or "")


async def find_blocker(world: World, queue: str | None = None) -> Blocker:
    step = await wait_on(world, queue or world.queue)
    assert step.blocked_by is not None
    assert (step.waiting_for, step.blocked_by.lane) == ("runner", None)
    assert step.job_id is not None
    shown = await jobs.show_job(world.deps, world.user, step.job_id)  # type: ignore[arg-type]
    assert shown.blocked_by == step.blocked_by
    return step.blocked_by


async def test_a_runner_that_is_there_is_only_waited_for(world: World) -> None:
    await world.peer.renew()

    step = await wait_on(world, world.queue)

    assert (step.waiting_for, step.blocked_by) == ("runner", None)


async def test_an_install_without_an_app_needs_a_runner(world: World) -> None:
    queue = await make_install(world.deps, world.user, "bare")

    blocker = await find_blocker(world, queue)

    assert blocker.message == "no runner was ever enrolled"
    assert blocker.hint == "Start a runner: exclave runners enrol --install bare"


async def test_an_install_of_an_app_needs_its_stack(world: World) -> None:
    await make_app(world.deps, world.user)
    made = await make_app_install(world.deps, world.user, "shop", provision=False)

    blocker = await find_blocker(world, made.id)

    assert blocker.hint == f"Let the customer run a Stack: exclave installs stack {made.name}"


async def test_builds_need_a_build_runner(world: World) -> None:
    queue = (await who_am_i(world.deps, world.user)).org.build_queue_id

    blocker = await find_blocker(world, queue)

    assert blocker.hint == "Start a build runner: exclave runners enrol --build"


async def test_a_revoked_runner_is_named_with_the_reason(world: World) -> None:
    await runners.revoke_runner(world.deps, world.user, world.peer.who.runner, "sold the laptop")

    blocker = await find_blocker(world)

    assert blocker.message == "runner `runner` is revoked: sold the laptop"


async def test_a_disabled_runner_is_the_customers_to_enable(world: World) -> None:
    stats = Stats(disabled=True)
    wish = Renew(boot=1, no=1, executions=[], stats=stats)
    await executions.renew_executions(world.deps, world.peer.who, wish)

    blocker = await find_blocker(world)

    assert blocker.message == "the customer has disabled runner `runner`"
    assert "exclave stack enable" in blocker.hint


@pytest.mark.parametrize(("after_s", "state"), [(20, "late"), (300, "lost")])
async def test_a_silent_runner_is_named_with_its_presence(
    world: World, after_s: int, state: str
) -> None:
    await world.peer.renew()
    world.clock.advance(after_s)

    blocker = await find_blocker(world)

    assert blocker.message == f"runner `runner` is {state}: no sign of life for {after_s} s"
    assert "exclave runner doctor" in blocker.hint


async def test_a_second_runner_that_is_up_is_enough(world: World) -> None:
    other = await enrol_fake_runner(world.deps, world.user, world.queue, "second")
    await world.peer.renew()
    world.clock.advance(300)
    await other.renew()

    assert (await wait_on(world, world.queue)).blocked_by is None


async def test_a_runner_that_cannot_do_it_is_not_enough(world: World) -> None:
    world.peer.kinds = ()
    await world.peer.poll()

    blocker = await find_blocker(world)

    assert blocker.message == "no runner does `noop` jobs"


@pytest.mark.parametrize("first", [True, False])
async def test_a_job_with_a_role_waits_for_a_newer_runner_and_no_other_job_does(
    world: World, *, first: bool
) -> None:
    world.peer.protocol = "1.1"
    await world.peer.poll()
    named = job("named", spec=make_script(role=True))
    plain = job("plain", spec=make_script(role=False))
    steps = (named, plain) if first else (plain, named)

    flow = await run_workflow(world.deps, world.user, world.queue, *steps)

    blockers = {step.name: step.blocked_by for step in flow.steps}
    assert blockers["plain"] is None
    blocker = blockers["named"]
    assert blocker is not None
    assert blocker.message == "the runner is too old for jobs with a role"
    assert blocker.hint == "Update the runner's program."
    shown = await jobs.show_job(world.deps, world.user, get_job(flow, "named"))
    assert shown.blocked_by == blocker


async def test_a_job_with_a_role_waits_for_no_runner_that_is_new_enough(world: World) -> None:
    world.peer.protocol = "1.1"
    await world.peer.poll()
    newer = await enrol_fake_runner(world.deps, world.user, world.queue, "newer")
    await newer.renew()

    flow = await run_workflow(
        world.deps, world.user, world.queue, job("named", spec=make_script(role=True))
    )

    assert flow.steps[0].blocked_by is None


async def test_a_watcher_learns_of_a_runner_that_came(world: World) -> None:
    queue = await make_install(world.deps, world.user, "bare")
    flow = await run_workflow(world.deps, world.user, queue, job("work"))

    peer = await enrol_fake_runner(world.deps, world.user, queue)
    before: Any = await workflows.show_workflow(world.deps, world.user, flow.id)  # type: ignore[arg-type]
    await peer.renew()
    after = await workflows.show_workflow(world.deps, world.user, flow.id)  # type: ignore[arg-type]

    assert before.steps[0].blocked_by.message == "runner `runner` is new: enrolled, never connected"
    assert after.steps[0].blocked_by is None
