"""After a restore: what happened since the backup is refused, what may have happened is looked at."""

import pytest

from exclave.control.after_restore import settle_restore
from exclave.control.installs import installs
from exclave.control.workflows import workflows
from exclave.domain.identity import InstallId
from exclave.domain.jobs import Superseded
from exclave.domain.workflows import WorkflowId
from tests.integration.control.conftest import World
from tests.support.world import ask_token, gate, job, run_workflow

LANE = ["component:a"]


async def settle(world: World) -> tuple[int, int, int]:
    done = await world.deps.db.write(lambda tx: settle_restore(tx, world.deps))
    return done.generation, done.interrupted, done.blocked_lanes


async def test_an_execution_of_before_writes_no_more_and_later_epochs_are_higher(
    world: World,
) -> None:
    await run_workflow(world.deps, world.user, world.queue, job("one"))
    old = (await world.peer.poll()).offers[0]
    await world.peer.start(old.execution_id, old.epoch)

    assert await settle(world) == (2, 1, 0)

    with pytest.raises(Superseded):
        await world.peer.hand_in(old.execution_id, old.epoch)
    world.peer.alive.clear()
    new = (await world.peer.poll()).offers[0]
    assert new.epoch > old.epoch + (1 << 31)


async def test_changes_still_to_come_wait_for_a_look(world: World) -> None:
    steps = (gate("ok"), job("apply", "ok", lanes=LANE, mutating=True))
    made = await run_workflow(world.deps, world.user, world.queue, *steps, approve_all=True)

    assert await settle(world) == (2, 0, 1)

    assert (await world.peer.poll()).offers == []
    await installs.release_lane(
        world.deps, world.user, InstallId(world.queue), LANE[0], "it was not applied"
    )
    await world.peer.work()
    shown = await workflows.show_workflow(world.deps, world.user, WorkflowId(made.id))
    assert shown.state == "succeeded"


async def test_a_runner_goes_on_with_whatever_generation_it_has_reached(world: World) -> None:
    await settle(world)

    assert await ask_token(world.deps, world.peer.enrolled.runner_id, world.peer.key, 77)
