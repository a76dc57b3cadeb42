"""Leases and epochs: what a runner may do to a job, and what proves that it stopped."""

import pytest

from exclave.base.errors import NotFound
from exclave.control.workflows import jobs
from exclave.domain.jobs import JobId, StaleRequest, Superseded
from exclave.wire.jobs import OutcomeState, Reason
from exclave.wire.runner import Outcome
from tests.integration.control.conftest import World
from tests.integration.control.jobs_kit import FAILED, LANE, begin, lane_states, look, look_at_flow
from tests.support.world import enrol_fake_runner, job, make_install, make_org, run_workflow


async def test_a_job_goes_from_queued_to_succeeded(world: World) -> None:
    offer = await begin(world)
    assert (await look(world)).state == "running"

    await world.peer.hand_in(offer.execution_id, offer.epoch)

    assert (await look(world)).state == "succeeded"
    assert (await look_at_flow(world)).state == "succeeded"


async def test_asking_twice_for_leave_to_start_is_fine(world: World) -> None:
    offer = await begin(world)

    assert not (await world.peer.start(offer.execution_id, offer.epoch)).cancel


async def test_a_result_counts_once_and_may_be_repeated(world: World) -> None:
    offer = await begin(world)

    for _ in range(2):
        assert (await world.peer.hand_in(offer.execution_id, offer.epoch)).recorded
    with pytest.raises(Superseded):
        await world.peer.hand_in(offer.execution_id, offer.epoch, FAILED)

    assert (await look(world)).state == "succeeded"


async def test_a_result_under_another_epoch_is_refused(world: World) -> None:
    offer = await begin(world)

    with pytest.raises(Superseded):
        await world.peer.hand_in(offer.execution_id, offer.epoch + 1)

    assert (await look(world)).state == "running"


async def test_no_success_without_a_start(world: World) -> None:
    await run_workflow(world.deps, world.user, world.queue, job("one"))
    offer = (await world.peer.poll()).offers[0]

    with pytest.raises(Superseded):
        await world.peer.hand_in(offer.execution_id, offer.epoch)

    assert (await look(world)).state == "offered"


async def test_a_refused_envelope_fails_the_job_before_it_starts(world: World) -> None:
    await run_workflow(world.deps, world.user, world.queue, job("one"))
    offer = (await world.peer.poll()).offers[0]
    refused = Outcome(state=OutcomeState.FAILED, reason=Reason.ENVELOPE_REFUSED)

    await world.peer.hand_in(offer.execution_id, offer.epoch, refused)

    shown = await look(world)
    assert (shown.state, shown.reason) == ("failed", "envelope_refused")


async def test_a_restarted_runner_without_the_execution_proves_that_it_stopped(
    world: World,
) -> None:
    await begin(world, mutating=True)

    await world.peer.restarted().poll()

    shown = await look(world)
    assert (shown.state, shown.reason) == ("lost", "runner_stopped_it")
    assert await lane_states(world) == {"component:a": "needs_reconcile"}


async def test_a_renewal_sent_before_the_start_proves_nothing(world: World) -> None:
    await run_workflow(world.deps, world.user, world.queue, job("one", lanes=LANE, mutating=True))
    offer = (await world.peer.poll()).offers[0]
    world.peer.no += 1
    delayed = world.peer.no
    await world.peer.start(offer.execution_id, offer.epoch)
    world.peer.alive.clear()
    now, world.peer.no = world.peer.no, delayed - 1

    await world.peer.renew()
    world.peer.no = now

    assert (await look(world)).state == "running"


async def test_an_older_renewal_is_ignored(world: World) -> None:
    offer = await begin(world)
    await world.peer.renew({offer.execution_id: offer.epoch})
    world.peer.no -= 1

    with pytest.raises(StaleRequest):
        await world.peer.renew()


async def test_read_only_work_that_stopped_is_offered_three_times(world: World) -> None:
    await begin(world)
    peer = world.peer
    for _ in range(2):
        peer = peer.restarted()
        offer = (await peer.poll()).offers[0]
        await peer.start(offer.execution_id, offer.epoch)

    assert (await peer.restarted().poll()).offers == []

    shown = await look(world)
    assert (shown.state, shown.reason, shown.attempts) == ("lost", "too_many_attempts", 3)
    assert len(shown.executions) == 3


async def test_a_zombie_changes_nothing_after_it_was_declared_lost(world: World) -> None:
    offer = await begin(world, mutating=True)
    await jobs.declare_lost(world.deps, world.user, JobId((await look(world)).id), "machine gone")

    verdicts = (await world.peer.renew({offer.execution_id: offer.epoch})).verdicts
    with pytest.raises(Superseded):
        await world.peer.hand_in(offer.execution_id, offer.epoch)

    assert verdicts == {offer.execution_id: "superseded"}
    assert (await look(world)).state == "lost"


async def test_another_runner_reaches_neither_the_queue_nor_the_execution(world: World) -> None:
    offer = await begin(world)
    sibling = await enrol_fake_runner(
        world.deps, world.user, await make_install(world.deps, world.user, "other"), "sibling"
    )
    stranger_org = await make_org(world.deps, "evil")
    stranger = await enrol_fake_runner(
        world.deps, stranger_org, await make_install(world.deps, stranger_org), "stranger"
    )

    for peer in (sibling, stranger):
        assert (await peer.poll()).offers == []
        with pytest.raises(NotFound):
            await peer.start(offer.execution_id, offer.epoch)
        with pytest.raises(NotFound):
            await peer.hand_in(offer.execution_id, offer.epoch)
        peer.alive.clear()
        assert (await peer.renew({offer.execution_id: offer.epoch})).verdicts == {
            offer.execution_id: "superseded"
        }
    assert (await look(world)).state == "running"
