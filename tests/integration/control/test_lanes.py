"""Lanes: work on one never overlaps, and a doubtful one waits for a look."""

import pytest

from exclave.base.errors import Conflict
from exclave.control import installs
from exclave.domain.identity import InstallId
from tests.integration.control.conftest import World
from tests.integration.control.jobs_kit import INTERRUPTED, LANE, begin
from tests.world import job, run_workflow


async def test_work_on_one_lane_never_overlaps(world: World) -> None:
    for _ in range(2):
        await run_workflow(
            world.deps, world.user, world.queue,
            job("plan", lanes=LANE), job("other", lanes=["component:b"]),
        )  # fmt: skip

    offers = (await world.peer.poll(free=8)).offers

    assert len(offers) == 2


async def test_the_sandbox_lane_excludes_all_others(world: World) -> None:
    await run_workflow(world.deps, world.user, world.queue, job("all", lanes=["sandbox"]))
    await run_workflow(world.deps, world.user, world.queue, job("one", lanes=LANE))

    assert len((await world.peer.poll(free=8)).offers) == 1


async def test_interrupted_changes_are_lost_and_block_their_lane_until_released(
    world: World,
) -> None:
    offer = await begin(world, mutating=True)
    await world.peer.hand_in(offer.execution_id, offer.epoch, INTERRUPTED)
    await run_workflow(world.deps, world.user, world.queue, job("next", lanes=LANE, mutating=True))

    assert (await world.peer.poll()).offers == []
    await installs.release_lane(
        world.deps, world.user, InstallId(world.queue), LANE[0], "checked by hand"
    )

    released = (await world.peer.poll()).offers[0]
    assert released.epoch > offer.epoch


async def test_a_lane_that_needs_no_look_is_not_released(world: World) -> None:
    await begin(world, mutating=True)

    with pytest.raises(Conflict, match="needs no release"):
        await installs.release_lane(
            world.deps, world.user, InstallId(world.queue), LANE[0], "in a hurry"
        )
