"""Locks of Terraform states: who holds one, and who may remove it."""

import pytest

from exclave.base.errors import Conflict, NotFound
from exclave.control.installs.installs import release_lane
from exclave.control.terraform.workspaces import list_workspaces, show_workspace, unlock_workspace
from exclave.domain.identity import InstallId
from exclave.domain.jobs import Superseded
from exclave.domain.terraform import LockHeld, StateRefused
from tests.integration.control.conftest import World
from tests.integration.control.tf_kit import (
    WORKSPACE,
    begin,
    count_blobs,
    lock,
    lose,
    read,
    state,
    unlock,
    write,
)


async def test_without_the_lock_nothing_is_written(world: World) -> None:
    offer = await begin(world)

    with pytest.raises(StateRefused, match="not locked"):
        await write(world, offer, state(1))
    await lock(world, offer)
    with pytest.raises(LockHeld):
        await write(world, offer, state(1), "another")
    await unlock(world, offer)
    with pytest.raises(StateRefused):
        await write(world, offer, state(1))

    assert await count_blobs(world) == 0


async def test_a_zombie_is_fenced_off_and_the_lock_is_free_for_the_next(world: World) -> None:
    old = await begin(world)
    await lock(world, old, "old")
    await write(world, old, state(1), "old")
    await lose(world, old)

    with pytest.raises(Superseded):
        await write(world, old, state(2), "old")
    await release_lane(world.deps, world.user, InstallId(world.queue), WORKSPACE, "looked")
    new = await begin(world)
    await lock(world, new, "new")
    await write(world, new, state(2, text="mine"), "new")
    for attempt in (write(world, old, state(3), "old"), unlock(world, old, "old")):
        with pytest.raises(Superseded):
            await attempt
    with pytest.raises(Superseded):
        await read(world, old)

    assert await read(world, new) == state(2, text="mine")


async def test_a_lock_that_is_held_tells_by_whom(world: World) -> None:
    offer = await begin(world)
    await lock(world, offer)
    await lock(world, offer)  # a repeated request
    sandbox = await show_workspace(world.deps, world.user, InstallId(world.queue), WORKSPACE, None)
    assert sandbox.lock is not None
    assert (sandbox.lock.stale, sandbox.lock.who) == (False, "me@host")

    with pytest.raises(LockHeld) as refused:
        await unlock(world, offer, "wrong")

    assert refused.value.facts["execution_id"] == offer.execution_id
    with pytest.raises(Conflict, match="still runs"):
        await unlock_workspace(world.deps, world.user, InstallId(world.queue), WORKSPACE, "because")


async def test_people_may_remove_the_lock_of_an_ended_execution(world: World) -> None:
    offer = await begin(world)
    await lock(world, offer)
    await write(world, offer, state(1))
    await world.peer.hand_in(offer.execution_id, offer.epoch)
    install = InstallId(world.queue)
    listed = await list_workspaces(world.deps, world.user, install)
    assert [one.lock is not None and one.lock.stale for one in listed.items] == [True]

    shown = await unlock_workspace(world.deps, world.user, install, WORKSPACE, "gone")

    assert shown.lock is None
    with pytest.raises(NotFound):
        await unlock_workspace(world.deps, world.user, install, WORKSPACE, "gone")
