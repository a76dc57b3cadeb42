"""Lanes: work on one never overlaps, and a doubtful one waits for a look."""

import pytest

from exclave.base.errors import Conflict
from exclave.control.dispatch import claims
from exclave.control.installs import installs
from exclave.domain.identity import InstallId
from exclave.domain.jobs import ExecutionId
from exclave.domain.lanes import conflicts_any
from exclave.storage import jobs, queues
from exclave.storage.engine.database import Tx
from tests.integration.control.conftest import World
from tests.integration.control.jobs_kit import INTERRUPTED, LANE, begin, lane_states
from tests.support.world import job, run_workflow


async def test_work_on_one_lane_never_overlaps(world: World) -> None:
    for _ in range(2):
        await run_workflow(
            world.deps,
            world.user,
            world.queue,
            job("plan", lanes=LANE),
            job("other", lanes=["component:b"]),
        )

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


async def test_jobs_on_a_blocked_lane_hide_nobody(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many wait for a busy lane, a runner finds the job behind them."""
    monkeypatch.setattr(claims, "_PAGE", 2)
    monkeypatch.setattr(claims, "_PAGES", 2)
    await begin(world, mutating=True)
    for number in range(6):
        await run_workflow(
            world.deps, world.user, world.queue, job(f"waits-{number}", lanes=LANE, priority=5)
        )
    await run_workflow(world.deps, world.user, world.queue, job("free", lanes=["component:b"]))

    offers = (await world.peer.poll()).offers

    assert len(offers) == 1
    assert await lane_states(world) == {"component:a": "busy", "component:b": "busy"}


@pytest.mark.parametrize(
    "taken",
    [[], ["sandbox"], ["component:a_b"], ["component:a-b", "action:b"], ["component:b"]],
    ids=str,
)
async def test_what_a_lane_keeps_waiting_is_the_same_in_sql(world: World, taken: list[str]) -> None:
    wanted = [
        [],
        ["sandbox"],
        ["component:a_b"],
        ["component:axb"],
        ["component:a-b"],
        ["action:b"],
        ["component:b"],
        ["component:bb"],
        ["component:c", "action:b"],
        ["component:c"],
    ]
    for number, lanes in enumerate(wanted):
        await run_workflow(world.deps, world.user, world.queue, job(f"j{number}", lanes=lanes))

    def look(tx: Tx) -> list[list[str]]:
        held = [(lane, 1, ExecutionId("exe_1")) for lane in taken]
        queues.occupy_lanes(tx, world.user.org, world.queue, held)
        asked = jobs.ask_queued(tx, world.user.org, world.queue, ["noop"], skip=0, limit=50)
        return [list(row.lanes) for row in asked()]

    found = await world.deps.db.write(look)

    assert sorted(found) == sorted(each for each in wanted if not conflicts_any(each, taken))
