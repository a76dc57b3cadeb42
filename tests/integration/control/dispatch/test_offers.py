"""Offers: which jobs a poll brings, to whom, and how often."""

import pytest

from exclave.base.errors import Unauthenticated
from exclave.control.dispatch import runners
from exclave.control.workflows import jobs
from exclave.domain.identity import RunnerId
from exclave.domain.jobs import JobId, Superseded
from tests.integration.control.conftest import World
from tests.integration.control.jobs_kit import LANE, has_role, make_script
from tests.support.world import enrol_fake_runner, job, run_workflow


async def test_jobs_come_by_priority_and_then_oldest_first(world: World) -> None:
    await run_workflow(world.deps, world.user, world.queue, job("old"), job("urgent", priority=5))
    world.clock.advance(1)
    await run_workflow(world.deps, world.user, world.queue, job("young"))

    offers = (await world.peer.poll(free=3)).offers

    for offer in offers:
        await world.peer.start(offer.execution_id, offer.epoch)
    page = await jobs.list_jobs(
        world.deps, world.user, cursor="", limit=9, queue=None, workflow=None, state=None
    )
    order = {
        e.id: j.step
        for j in page.items
        for e in (await jobs.show_job(world.deps, world.user, JobId(j.id))).executions
    }
    names = [order[offer.execution_id] for offer in offers]
    assert names == ["urgent", "old", "young"]


async def test_a_runner_gets_no_more_than_it_has_room_for(world: World) -> None:
    await run_workflow(world.deps, world.user, world.queue, *[job(f"j{n}") for n in range(5)])

    assert len((await world.peer.poll(free=2)).offers) == 2


async def test_a_lost_reply_is_answered_again_with_the_same_offers(world: World) -> None:
    await run_workflow(world.deps, world.user, world.queue, job("one"), job("two"))

    first = await world.peer.poll(free=1, nonce="a-lost-reply-0001")
    again = await world.peer.poll(free=1, nonce="a-lost-reply-0001")

    assert [o.envelope for o in first.offers] == [o.envelope for o in again.offers]


async def test_an_offer_that_was_never_heard_of_is_offered_again(world: World) -> None:
    await run_workflow(world.deps, world.user, world.queue, job("one", lanes=LANE, mutating=True))
    lost = (await world.peer.poll()).offers[0]

    offers = (await world.peer.poll()).offers

    assert [o.execution_id for o in offers] != [lost.execution_id]
    assert len(offers) == 1
    with pytest.raises(Superseded):
        await world.peer.start(lost.execution_id, lost.epoch)


async def test_two_runners_of_one_install_share_its_work(world: World) -> None:
    second = await enrol_fake_runner(world.deps, world.user, world.queue, "second")
    await run_workflow(world.deps, world.user, world.queue, job("a", lanes=LANE, mutating=True))
    await run_workflow(world.deps, world.user, world.queue, job("b"))

    first = (await world.peer.poll(free=1)).offers
    other = (await second.poll(free=1)).offers

    assert len(first) == len(other) == 1
    assert first[0].execution_id != other[0].execution_id


async def test_a_revoked_runner_gets_nothing_any_more(world: World) -> None:
    await runners.revoke_runner(
        world.deps, world.user, RunnerId(world.peer.who.runner), "laptop stolen"
    )

    with pytest.raises(Unauthenticated):
        await world.peer.poll()


async def test_a_runner_before_protocol_1_2_gets_no_job_with_a_role(world: World) -> None:
    world.peer.protocol = "1.1"
    specs = (make_script(role=True), make_script(role=False))
    steps = [job(f"j{number}", spec=spec) for number, spec in enumerate(specs)]
    await run_workflow(world.deps, world.user, world.queue, *steps)

    old = await world.peer.poll()
    for offer in old.offers:
        await world.peer.start(offer.execution_id, offer.epoch)
    world.peer.protocol = "1.2"
    new = await world.peer.poll()

    assert [has_role(offer) for offer in old.offers] == [False]
    assert [has_role(offer) for offer in new.offers] == [True]
