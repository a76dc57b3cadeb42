"""Cancelled jobs: at once, or by the runner that has them."""

import pytest

from exclave.base.errors import Conflict
from exclave.control.workflows import jobs
from exclave.domain.jobs import JobId
from exclave.wire.jobs import OutcomeState, Reason
from exclave.wire.runner import Outcome
from tests.integration.control.conftest import World
from tests.integration.control.jobs_kit import INTERRUPTED, begin, look, look_at_flow
from tests.support.world import job, run_workflow

CANCELLED = Outcome(state=OutcomeState.CANCELLED, reason=Reason.CANCELLED)


async def test_a_queued_job_is_cancelled_at_once(world: World) -> None:
    await run_workflow(world.deps, world.user, world.queue, job("one"))

    shown = await jobs.cancel_job(world.deps, world.user, JobId((await look(world)).id))

    assert shown.state == "cancelled"
    assert (await look_at_flow(world)).state == "failed"


async def test_a_running_job_is_cancelled_by_its_runner(world: World) -> None:
    offer = await begin(world)
    await jobs.cancel_job(world.deps, world.user, JobId((await look(world)).id))

    told = (await world.peer.poll()).cancel
    again = (await world.peer.poll()).cancel
    verdicts = (await world.peer.renew({offer.execution_id: offer.epoch})).verdicts
    await world.peer.hand_in(offer.execution_id, offer.epoch, CANCELLED)

    assert (told, again) == ([offer.execution_id], [])
    assert verdicts == {offer.execution_id: "cancel"}
    assert (await look(world)).state == "cancelled"


async def test_an_offered_job_that_was_cancelled_is_not_worked_on(world: World) -> None:
    await run_workflow(world.deps, world.user, world.queue, job("one"))
    offer = (await world.peer.poll()).offers[0]
    await jobs.cancel_job(world.deps, world.user, JobId((await look(world)).id))

    reply = await world.peer.start(offer.execution_id, offer.epoch)

    assert reply.cancel


async def test_cancelled_read_only_work_is_not_offered_again(world: World) -> None:
    offer = await begin(world)
    await jobs.cancel_job(world.deps, world.user, JobId((await look(world)).id))

    await world.peer.hand_in(offer.execution_id, offer.epoch, INTERRUPTED)

    assert (await look(world)).state == "cancelled"


async def test_an_ended_job_cannot_be_cancelled(world: World) -> None:
    offer = await begin(world)
    await world.peer.hand_in(offer.execution_id, offer.epoch)

    with pytest.raises(Conflict, match="has ended"):
        await jobs.cancel_job(world.deps, world.user, JobId((await look(world)).id))
