"""States that a runner rescued: restored when they follow and nobody works."""

import pytest

from exclave.base.errors import Conflict, NotFound
from exclave.control.audit import list_audit
from exclave.control.installs.installs import release_lane
from exclave.control.terraform import rescued_states
from exclave.domain.identity import InstallId
from exclave.domain.jobs import ExecutionId
from exclave.domain.terraform import StateRefused
from exclave.wire.runner import Offer
from exclave.wire.states import SealedState
from exclave.wire.terraform import RestoreState, TfWorkspaceDetail
from tests.integration.control.conftest import World
from tests.integration.control.tf_kit import (
    WORKSPACE,
    begin,
    count_blobs,
    lock,
    lose,
    read,
    state,
    write,
)
from tests.support.files import put_file


async def hand_in_rescued(world: World, offer: Offer, given: SealedState) -> None:
    execution, name = ExecutionId(offer.execution_id), "errored.tfstate.sealed"
    await put_file(world.deps, world.peer.who, execution, name, offer.epoch, given.pack())


async def restore(world: World, offer: Offer) -> TfWorkspaceDetail:
    wish = RestoreState(execution_id=offer.execution_id, reason="it was checked")
    install = InstallId(world.queue)
    return await rescued_states.restore_state(world.deps, world.user, install, WORKSPACE, wish)


async def test_a_rescued_state_becomes_the_next_version_while_its_lane_waits(world: World) -> None:
    offer = await begin(world)
    await lock(world, offer)
    await write(world, offer, state(1))
    await lose(world, offer)
    await hand_in_rescued(world, offer, state(3))
    install = InstallId(world.queue)
    listed = await rescued_states.list_rescued(world.deps, world.user, install, WORKSPACE)

    shown = await restore(world, offer)

    assert [(one.serial, one.misfit) for one in listed.items] == [(3, "")]
    assert shown.newest is not None
    assert (shown.newest.version, shown.newest.serial) == (2, 3)
    again = await rescued_states.list_rescued(world.deps, world.user, install, WORKSPACE)
    assert again.items[0].misfit == "it is stored already"
    await release_lane(world.deps, world.user, install, WORKSPACE, "restored")
    assert await read(world, await begin(world)) == state(3)
    audit = await list_audit(world.deps, world.user, "", 50)
    assert "tf_state_restored" in {entry.action for entry in audit.items}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (state(2), "its serial is 2, and the stored state is at 2"),
        (state(9, "other"), "another lineage"),
    ],
)
async def test_a_rescued_state_that_does_not_follow_is_refused(
    world: World, given: SealedState, told: str
) -> None:
    offer = await begin(world)
    await lock(world, offer)
    await write(world, offer, state(2, text="newer"))
    await world.peer.hand_in(offer.execution_id, offer.epoch)
    await hand_in_rescued(world, offer, given)

    with pytest.raises(StateRefused, match=told):
        await restore(world, offer)

    assert await count_blobs(world) == 1


async def test_nothing_is_restored_while_a_job_holds_the_lane(world: World) -> None:
    offer = await begin(world)
    await hand_in_rescued(world, offer, state(3))
    with pytest.raises(Conflict, match="works on lane `component:db`"):
        await restore(world, offer)
    await world.peer.hand_in(offer.execution_id, offer.epoch)
    other = await begin(world, "sandbox")

    with pytest.raises(Conflict, match="works on lane `sandbox`"):
        await restore(world, offer)
    with pytest.raises(NotFound, match="rescued no state"):
        await restore(world, other)

    assert await count_blobs(world) == 0
