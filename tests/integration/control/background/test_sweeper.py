"""Silence: after how long a job is queued again, or lost."""

import pytest

from exclave.base.errors import Unavailable
from exclave.control.background.sweeper import Sweeper
from exclave.control.dispatch import completion
from exclave.control.progress import lane_turns
from exclave.domain.identity import QueueId, User
from exclave.domain.workflows import Workflow
from exclave.storage.engine.database import Database, Tx
from exclave.storage.workflows import Loaded
from tests.integration.control.conftest import World
from tests.integration.control.jobs_kit import LANE, begin, lane_states, look
from tests.support.world import (
    FakeRunner,
    enrol_fake_runner,
    job,
    make_install,
    make_org,
    run_workflow,
)


async def sweep_for(world: World, sweeper: Sweeper, seconds: int) -> None:
    for _ in range(0, seconds, 5):
        await sweeper.sweep()
        world.clock.advance(min(5, seconds))
    await sweeper.sweep()


async def test_silence_makes_read_only_work_available_after_a_minute(world: World) -> None:
    sweeper = Sweeper(world.deps)
    await begin(world)
    await sweep_for(world, sweeper, 59)
    assert (await look(world)).state == "running"

    await sweep_for(world, sweeper, 6)

    assert (await look(world)).state == "queued"


async def test_silence_loses_changes_after_fifteen_minutes(world: World) -> None:
    sweeper = Sweeper(world.deps)
    await sweeper.sweep()
    await begin(world, mutating=True)
    await sweep_for(world, sweeper, 890)
    assert (await look(world)).state == "running"

    await sweep_for(world, sweeper, 20)

    assert (await look(world)).state == "lost"


async def test_a_restarted_server_waits_longer_before_it_gives_up_on_changes(world: World) -> None:
    await begin(world, mutating=True)
    world.clock.advance(3600)
    sweeper = Sweeper(world.deps)

    await sweep_for(world, sweeper, 1190)
    assert (await look(world)).state == "running"
    await sweep_for(world, sweeper, 20)

    assert (await look(world)).state == "lost"


async def test_an_offer_that_nobody_starts_goes_back(world: World) -> None:
    await run_workflow(world.deps, world.user, world.queue, job("one", lanes=LANE, mutating=True))
    await world.peer.poll()
    world.clock.advance(31)

    await Sweeper(world.deps).sweep()

    assert (await look(world)).state == "queued"
    assert await lane_states(world) == {"component:a": "free"}


async def make_other(world: World) -> tuple[User, QueueId, FakeRunner]:
    """Make another org with an install and a runner."""
    user = await make_org(world.deps, "other")
    queue = await make_install(world.deps, user)
    return user, queue, await enrol_fake_runner(world.deps, user, queue)


def break_for(monkeypatch: pytest.MonkeyPatch, queue: QueueId) -> None:
    """Let every move of a workflow of this queue fail in a way that nobody expects."""
    find = lane_turns.find_blocked

    def find_blocked(tx: Tx, loaded: Loaded, value: Workflow) -> frozenset[str]:
        if loaded.queue == queue:
            raise RecursionError
        return find(tx, loaded, value)

    monkeypatch.setattr(lane_turns, "find_blocked", find_blocked)


async def test_an_execution_that_cannot_be_ended_keeps_nobody_elses_running(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    user, queue, peer = await make_other(world)
    sweeper = Sweeper(world.deps)
    await sweeper.sweep()
    await run_workflow(world.deps, user, queue, job("bad", lanes=LANE, mutating=True))
    (offer,) = (await peer.poll()).offers
    await peer.start(offer.execution_id, offer.epoch)
    await begin(world, mutating=True)
    break_for(monkeypatch, queue)

    await sweep_for(world, sweeper, 910)

    assert (await look(world)).state == "lost"
    assert world.deps.chores.of("lost").rows_failed > 0


async def test_what_could_not_be_ended_is_ended_once_it_can_be(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweeper = Sweeper(world.deps)
    await begin(world, mutating=True)
    with monkeypatch.context() as broken:
        break_for(broken, world.queue)
        await sweep_for(world, sweeper, 1300)
    assert (await look(world)).state == "running"

    await sweep_for(world, sweeper, 3600)

    assert (await look(world)).state == "lost"


async def test_what_an_ending_breaks_in_the_install_does_not_keep_the_lane_taken(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweeper = Sweeper(world.deps)
    await sweeper.sweep()
    await begin(world, mutating=True)
    monkeypatch.setattr(completion, "apply_job_result", lambda *_: 1 // 0)

    await sweep_for(world, sweeper, 910)

    assert (await look(world)).state == "lost"
    assert await lane_states(world) == {"component:a": "needs_reconcile"}


async def test_a_database_that_was_away_restarts_patience(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweeper = Sweeper(world.deps)
    await begin(world)
    await sweep_for(world, sweeper, 50)

    async def fail(*_: object) -> None:
        raise Unavailable("the database is away")

    with monkeypatch.context() as away:
        away.setattr(Database, "read", fail)
        with pytest.raises(Unavailable):
            await sweeper.sweep()
    await sweep_for(world, sweeper, 50)
    assert (await look(world)).state == "running"

    await sweep_for(world, sweeper, 15)

    assert (await look(world)).state == "queued"
