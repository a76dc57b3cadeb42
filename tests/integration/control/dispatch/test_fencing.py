"""Whoever ends an execution acts on what was read before: what happened since must count."""

from datetime import timedelta

import pytest

from exclave.base.errors import Conflict, Unauthenticated
from exclave.control.background.sweeper import Sweeper
from exclave.control.dispatch import executions as control_executions
from exclave.control.dispatch import runners
from exclave.control.dispatch.completion import end_interrupted, end_stopped, withdraw_offers
from exclave.control.workflows import jobs
from exclave.domain.identity import RunnerId
from exclave.domain.jobs import ExecutionId, JobId, JobState, Reason, Silence, Superseded
from exclave.storage import executions
from exclave.storage import jobs as stored_jobs
from exclave.storage.executions import STARTED, silent_since
from exclave.wire.runner import Start
from tests.integration.control.conftest import World
from tests.integration.control.jobs_kit import LANE, begin, lane_states, look, look_at_flow
from tests.support.world import enrol_fake_runner, job, run_workflow


async def test_an_offer_that_was_started_meanwhile_is_not_withdrawn(world: World) -> None:
    await run_workflow(world.deps, world.user, world.queue, job("one", lanes=LANE, mutating=True))
    offer = (await world.peer.poll()).offers[0]
    db = world.deps.db
    stale = world.clock.now() + timedelta(seconds=1)
    listed = await db.read(lambda tx: executions.list_stale_offers(tx, stale))
    await world.peer.start(offer.execution_id, offer.epoch)

    await db.write(lambda tx: withdraw_offers(tx, world.deps, listed))

    assert [row.id for row in listed] == [offer.execution_id]
    assert (await look(world)).state == "running"
    assert await lane_states(world) == {"component:a": "busy"}
    second = await enrol_fake_runner(world.deps, world.user, world.queue, "second")
    assert not (await second.poll()).offers
    await world.peer.hand_in(offer.execution_id, offer.epoch)
    assert (await look(world)).state == "succeeded"


@pytest.mark.parametrize("mutating", [False, True])
async def test_what_was_renewed_meanwhile_is_not_given_up(world: World, *, mutating: bool) -> None:
    offer = await begin(world, mutating=mutating)
    db, until = world.deps.db, world.clock.now() + timedelta(seconds=1)
    silence = Silence(world.clock.now(), until)
    listed = await db.read(lambda tx: executions.list_silent(tx, silence, mutating=mutating))
    world.clock.advance(1)
    await world.peer.renew({offer.execution_id: offer.epoch})

    ended = await db.write(
        lambda tx: end_interrupted(
            tx, world.deps, listed[0], Reason.RUNNER_SILENT, silent_since(until)
        )
    )

    assert not ended
    assert (await look(world)).state == "running"


async def test_a_result_that_came_meanwhile_stays(world: World) -> None:
    offer = await begin(world, mutating=True)
    db, until = world.deps.db, world.clock.now() + timedelta(seconds=1)
    listed = await db.read(
        lambda tx: executions.list_silent(tx, Silence(world.clock.now(), until), mutating=True)
    )
    await world.peer.hand_in(offer.execution_id, offer.epoch)

    for expected in (silent_since(until), STARTED):
        assert not await db.write(
            lambda tx, expected=expected: end_interrupted(  # type: ignore[misc]
                tx, world.deps, listed[0], Reason.RUNNER_SILENT, expected
            )
        )

    assert (await look(world)).state == "succeeded"
    assert await lane_states(world) == {"component:a": "free"}


async def test_a_list_of_work_ends_only_what_still_runs(world: World) -> None:
    offer = await begin(world, mutating=True)
    db, peer = world.deps.db, world.peer
    opened = await db.read(lambda tx: executions.list_open(tx, peer.who.org, peer.who.runner))
    await peer.hand_in(offer.execution_id, offer.epoch)

    await db.write(lambda tx: end_stopped(tx, world.deps, opened, peer.boot, peer.no + 1, []))

    assert (await look(world)).state == "succeeded"


async def test_a_job_that_is_cancelled_while_its_offer_goes_back_ends(world: World) -> None:
    await run_workflow(world.deps, world.user, world.queue, job("one", lanes=LANE, mutating=True))
    await world.peer.poll()
    shown = await look(world)
    db, later = world.deps.db, world.clock.now() + timedelta(seconds=1)
    listed = await db.read(lambda tx: executions.list_stale_offers(tx, later))
    await jobs.cancel_job(world.deps, world.user, JobId(shown.id))

    await db.write(lambda tx: withdraw_offers(tx, world.deps, listed))

    assert (await look(world)).state == "cancelled"
    assert (await look_at_flow(world)).steps[0].state == "cancelled"
    assert await lane_states(world) == {"component:a": "free"}


async def test_an_offer_of_a_job_that_ended_meanwhile_gives_its_lanes_back_at_once(
    world: World,
) -> None:
    await run_workflow(world.deps, world.user, world.queue, job("one", lanes=LANE))
    offer = (await world.peer.poll()).offers[0]
    shown = await look(world)

    ended = (world.user.org, JobId(shown.id), JobState.CANCELLED)
    await world.deps.db.write(lambda tx: stored_jobs.end_job(tx, *ended, reason=Reason.CANCELLED))

    with pytest.raises(Superseded):
        await world.peer.start(offer.execution_id, offer.epoch)

    assert await lane_states(world) == {"component:a": "free"}
    assert (await look(world)).executions[0].state == "ended"
    assert (await look(world)).state == "cancelled"


async def test_a_runner_that_was_revoked_a_moment_ago_starts_nothing(world: World) -> None:
    await run_workflow(world.deps, world.user, world.queue, job("one", lanes=LANE, mutating=True))
    offer = (await world.peer.poll()).offers[0]
    who = world.peer.who  # authenticated before, as a request on its way is
    await runners.revoke_runner(world.deps, world.user, RunnerId(who.runner), "laptop stolen")

    with pytest.raises(Unauthenticated):
        await control_executions.start_execution(
            world.deps, who, ExecutionId(offer.execution_id), Start(boot=1, no=9, epoch=offer.epoch)
        )

    assert (await look(world)).state == "offered"


async def test_a_job_that_ended_a_moment_ago_is_not_declared_lost(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer = await begin(world, mutating=True)
    shown = JobId((await look(world)).id)
    read = world.deps.db.read
    row = await read(lambda tx: stored_jobs.find_job(tx, world.user.org, shown))
    opened = await read(lambda tx: executions.find_open_of_job(tx, world.user.org, shown))
    await world.peer.hand_in(offer.execution_id, offer.epoch)
    monkeypatch.setattr(jobs, "find_job", lambda *_: row)
    monkeypatch.setattr(executions, "find_open_of_job", lambda *_: opened)

    with pytest.raises(Conflict):
        await jobs.declare_lost(world.deps, world.user, shown, "the machine burned")

    monkeypatch.undo()
    assert (await look(world)).state == "succeeded"


async def test_many_changes_in_their_grace_hide_no_silent_reader(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executions, "PAGE", 2)
    sweeper = Sweeper(world.deps)
    changes = [job(f"change-{n}", lanes=[f"component:c{n}"], mutating=True) for n in range(5)]
    readers = [job(f"reader-{n}") for n in range(5)]
    await run_workflow(world.deps, world.user, world.queue, *changes, *readers)
    for offer in (await world.peer.poll(free=10)).offers:
        await world.peer.start(offer.execution_id, offer.epoch)

    for _ in range(14):
        await sweeper.sweep()
        world.clock.advance(5)

    page = await jobs.list_jobs(
        world.deps, world.user, cursor="", limit=20, queue=None, workflow=None, state=None
    )
    states = {shown.step: shown.state for shown in page.items}
    assert states == {step.name: "running" for step in changes} | {
        step.name: "queued" for step in readers
    }
