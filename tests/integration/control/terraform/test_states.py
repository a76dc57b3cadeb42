"""Terraform states: fenced, ordered, kept version by version."""

import pytest

from exclave.base.errors import NotFound, TooLarge
from exclave.control.terraform import workspaces
from exclave.control.terraform.orphans import list_orphans
from exclave.control.terraform.workspaces import show_workspace
from exclave.domain.identity import InstallId
from exclave.domain.jobs import ExecutionId, Superseded
from exclave.domain.terraform import StateRefused
from exclave.wire.states import MAX_ATTACHMENT, SealedState
from tests.integration.control.conftest import World
from tests.integration.control.tf_kit import WORKSPACE, begin, count_blobs, lock, read, state, write
from tests.support.files import get_state, put_file
from tests.support.world import enrol_fake_runner, make_install, make_org


async def test_versions_are_kept_and_the_newest_is_read(world: World) -> None:
    offer = await begin(world)
    assert await read(world, offer) is None
    await lock(world, offer)

    assert [await write(world, offer, state(n)) for n in (1, 2, 5)] == [1, 2, 3]

    found = await read(world, offer)
    assert found is not None
    assert found == state(5)
    shown = await show_workspace(
        world.deps, world.user, InstallId(world.queue), WORKSPACE, version=1
    )
    assert shown.newest is not None
    assert (shown.newest.serial, shown.newest.resources[0].address) == (1, "terraform_data.a")
    assert [one.serial for one in shown.versions] == [5, 2, 1]
    assert await count_blobs(world) == 3


async def test_the_same_version_again_is_stored_once(world: World) -> None:
    offer = await begin(world)
    await lock(world, offer)

    assert [await write(world, offer, state(1)) for _ in range(3)] == [1, 1, 1]
    assert await count_blobs(world) == 1


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (state(3, text="other"), "newer serial"),
        (state(2), "newer serial"),
        (state(9, lineage="another"), "another lineage"),
    ],
)
async def test_a_version_that_does_not_follow_is_refused(
    world: World, given: SealedState, why: str
) -> None:
    offer = await begin(world)
    await lock(world, offer)
    await write(world, offer, state(3))

    with pytest.raises(StateRefused, match=why):
        await write(world, offer, given)

    assert await read(world, offer) == state(3)
    assert await count_blobs(world) == 1


async def test_a_state_is_written_only_on_its_own_lane(world: World) -> None:
    offer = await begin(world)

    with pytest.raises(Superseded):
        await lock(world, offer, workspace="component:other")
    with pytest.raises(Superseded):
        await write(world, offer, state(1), ws="component:other")


async def test_a_state_that_is_too_large_is_refused(world: World) -> None:
    offer = await begin(world)
    await lock(world, offer)
    huge = state(1).model_copy(update={"sealed": b"x" * (MAX_ATTACHMENT + 1)})

    with pytest.raises(TooLarge):
        await write(world, offer, huge)


async def test_another_tenant_sees_and_changes_nothing(world: World) -> None:
    offer = await begin(world)
    await lock(world, offer)
    await write(world, offer, state(1))
    stranger = await make_org(world.deps, "other")
    queue = await make_install(world.deps, stranger)
    spy = await enrol_fake_runner(world.deps, stranger, queue)
    neighbour = await enrol_fake_runner(
        world.deps, world.user, await make_install(world.deps, world.user, "second")
    )

    for who in (spy.who, neighbour.who):
        with pytest.raises(NotFound):
            await get_state(
                world.deps, who, ExecutionId(offer.execution_id), offer.epoch, WORKSPACE
            )
        with pytest.raises(NotFound):
            await put_file(
                world.deps, who, ExecutionId(offer.execution_id), "plan.json", offer.epoch, b"{}"
            )
    install = InstallId(world.queue)
    with pytest.raises(NotFound):
        await workspaces.list_workspaces(world.deps, stranger, install)
    with pytest.raises(NotFound):
        await list_orphans(world.deps, stranger, install)
