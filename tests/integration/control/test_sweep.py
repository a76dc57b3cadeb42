"""Silence: after how long a job is queued again, or lost."""

from exclave.control.sweep import Sweeper
from tests.integration.control.conftest import World
from tests.integration.control.jobs_kit import LANE, begin, lane_states, look
from tests.world import job, run_workflow


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
