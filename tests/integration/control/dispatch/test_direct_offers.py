"""A runner whose poll waits gets its job from the transaction that makes it."""

import asyncio
from collections.abc import Sequence

import pytest

from exclave.base.errors import NotFound, Unauthenticated
from exclave.control.deps import Deps
from exclave.control.dispatch import polls, runners
from exclave.control.progress.advance import begin_new
from exclave.control.workflows import workflows
from exclave.domain.workflows import WorkflowId
from exclave.storage.engine.database import Tx
from exclave.storage.workflows import Loaded
from exclave.wire.runner import PollReply
from exclave.wire.workflows import NewWorkflow
from tests.integration.control.conftest import World
from tests.integration.control.exchanges_kit import Counter
from tests.integration.control.jobs_kit import has_role, make_script
from tests.support.world import job, make_install, make_org


@pytest.fixture
def never_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    def look(*args: object, **more: object) -> PollReply:
        raise AssertionError("the poll went to look for its job")

    monkeypatch.setattr(polls, "_look", look)


async def hold_poll(world: World, free: int = 4) -> "asyncio.Task[PollReply]":
    polling = asyncio.create_task(world.peer.poll(free, hold=25.0))
    while (held := world.deps.parked_polls.pop_oldest(world.user.org, world.queue)) is None:  # noqa: ASYNC110 - it tells nobody
        await asyncio.sleep(0.001)
    world.deps.parked_polls.add(held)
    return polling


def wish(world: World, *, mutating: bool = False) -> NewWorkflow:
    lanes = ["component:db"] if mutating else []
    step = job("work", lanes=lanes, mutating=mutating)
    return NewWorkflow(name="one", queue_id=world.queue, steps=[step])


@pytest.mark.usefixtures("never_looks")
@pytest.mark.parametrize("mutating", [False, True])
async def test_a_waiting_poll_is_answered_by_who_makes_the_job(
    world: World, *, mutating: bool
) -> None:
    polling = await hold_poll(world)

    made = await workflows.create_workflow(world.deps, world.user, wish(world, mutating=mutating))
    (offer,) = (await polling).offers

    assert made.steps[0].job_state == "offered"
    await world.peer.start(offer.execution_id, offer.epoch)
    await world.peer.hand_in(offer.execution_id, offer.epoch)
    ended = await workflows.show_workflow(world.deps, world.user, WorkflowId(made.id))
    assert ended.state == "succeeded"


async def test_a_handover_takes_two_exchanges(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(2):  # the first prepares the statements
        polling = await hold_poll(world)
        counter = Counter(monkeypatch)
        await workflows.begin_workflow(world.deps, world.user, wish(world))
        exchanges = counter.exchanges
        monkeypatch.undo()
        (offer,) = (await polling).offers
        await world.peer.start(offer.execution_id, offer.epoch)
        await world.peer.hand_in(offer.execution_id, offer.epoch)

    # SQLite runs in the process: there is nobody to exchange anything with.
    assert exchanges == (2 if world.deps.db.dialect.crosses_processes else 0)


@pytest.mark.usefixtures("never_looks")
@pytest.mark.parametrize("more", [0, 70])
async def test_of_several_new_jobs_the_most_urgent_is_handed_over(world: World, more: int) -> None:
    waits = [job(f"waits-{number}") for number in range(more)]
    steps = [job("later"), *waits, job("urgent", priority=5), job("next")]
    polling = await hold_poll(world, free=2)

    made = await workflows.create_workflow(
        world.deps, world.user, NewWorkflow(name="many", queue_id=world.queue, steps=steps)
    )

    assert len((await polling).offers) == 2
    offered = {step.name for step in made.steps if step.job_state == "offered"}
    assert len(offered) == 2
    assert "urgent" in offered


async def test_a_transaction_that_fails_answers_nobody(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    polling = await hold_poll(world)

    def fail(tx: Tx, deps: Deps, begun: Sequence[Loaded]) -> None:
        begin_new(tx, deps, begun)
        raise NotFound("something is missing")

    monkeypatch.setattr(workflows, "begin_new", fail)
    with pytest.raises(NotFound):
        await workflows.create_workflow(world.deps, world.user, wish(world))
    monkeypatch.undo()
    await asyncio.sleep(0.01)
    assert not polling.done()

    await workflows.create_workflow(world.deps, world.user, wish(world))
    assert len((await polling).offers) == 1


async def test_a_poll_that_was_replaced_takes_nothing(world: World) -> None:
    polling = await hold_poll(world)
    newer = asyncio.create_task(world.peer.poll(hold=25.0))
    await asyncio.sleep(0.01)

    await workflows.create_workflow(world.deps, world.user, wish(world))

    assert len((await newer).offers) == 1
    polling.cancel()
    await asyncio.gather(polling, return_exceptions=True)


async def test_a_revoked_runner_takes_nothing(world: World) -> None:
    polling = await hold_poll(world)
    held = world.deps.parked_polls.pop_oldest(world.user.org, world.queue)
    assert held is not None
    await runners.revoke_runner(world.deps, world.user, world.peer.who.runner, "gone")
    world.deps.parked_polls.add(held)

    made = await workflows.create_workflow(world.deps, world.user, wish(world))

    assert made.steps[0].job_state == "queued"
    with pytest.raises(Unauthenticated):
        await polling


async def test_the_poll_of_another_org_is_not_touched(world: World) -> None:
    polling = await hold_poll(world)
    stranger = await make_org(world.deps, "other")
    await make_install(world.deps, stranger)

    with pytest.raises(NotFound):
        await workflows.create_workflow(world.deps, stranger, wish(world))

    assert world.deps.parked_polls.pop_oldest(world.user.org, world.queue) is not None
    polling.cancel()
    await asyncio.gather(polling, return_exceptions=True)


@pytest.mark.usefixtures("never_looks")
async def test_a_result_brings_the_next_job_to_a_waiting_poll(world: World) -> None:
    steps = [job("first"), job("second", "first")]
    flow = NewWorkflow(name="two", queue_id=world.queue, steps=steps)
    await workflows.begin_workflow(world.deps, world.user, flow)
    (offer,) = (await world.peer.poll()).offers
    await world.peer.start(offer.execution_id, offer.epoch)
    polling = await hold_poll(world)

    await world.peer.hand_in(offer.execution_id, offer.epoch)

    (following,) = (await polling).offers
    assert following.epoch > offer.epoch


async def test_a_waiting_poll_of_an_old_runner_is_not_answered_with_a_role(world: World) -> None:
    world.peer.protocol = "1.1"
    polling = await hold_poll(world)
    steps = [job("named", spec=make_script(role=True)), job("plain", spec=make_script(role=False))]
    flow = NewWorkflow(name="two", queue_id=world.queue, steps=steps)

    await workflows.create_workflow(world.deps, world.user, flow)
    reply = await polling

    assert [has_role(offer) for offer in reply.offers] == [False]
