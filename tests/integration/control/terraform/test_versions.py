"""Older versions of a Terraform state: restored as the next one when nobody works."""

from dataclasses import replace
from functools import partial

import pytest
from pydantic import ValidationError
from sqlalchemy import update

from exclave.base.errors import Conflict, Forbidden, InvalidInput, NotFound
from exclave.control.audit import list_audit
from exclave.control.deps import Deps
from exclave.control.installs.installs import release_lane
from exclave.control.terraform import rescued_states
from exclave.control.terraform.workspaces import list_workspaces, show_workspace
from exclave.control.workflows import jobs
from exclave.domain.identity import Grant, InstallId, QueueId, Role, User
from exclave.domain.jobs import ExecutionId, JobId
from exclave.domain.terraform import NewStateVersion, StateRefused
from exclave.domain.workflows import StepState
from exclave.storage import tf_states
from exclave.storage.tables.terraform import tf_states as table
from exclave.wire.installs import WorkflowKind
from exclave.wire.runner import Offer, Outcome
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
    unlock,
    write,
)
from tests.support.install_fixture import InstallFixture, digest_of, provision, succeed
from tests.support.world import make_org


async def begin_with(world: World, *serials: int) -> Offer:
    """Begin a job that has written these versions and still holds its lane."""
    offer = await begin(world)
    await lock(world, offer)
    for serial in serials:
        await write(world, offer, state(serial, ids=f"id-{serial}"))
    return offer


async def keep(world: World, *serials: int) -> None:
    """Store versions, and end the job that wrote them."""
    offer = await begin_with(world, *serials)
    await unlock(world, offer)
    await world.peer.hand_in(offer.execution_id, offer.epoch)


async def restore(world: World, version: int, user: User | None = None) -> TfWorkspaceDetail:
    wish = RestoreState(version=version, reason="the newest was a mistake")
    install = InstallId(world.queue)
    return await rescued_states.restore_state(
        world.deps, user or world.user, install, WORKSPACE, wish
    )


async def list_serials(world: World) -> list[int]:
    shown = await show_workspace(world.deps, world.user, InstallId(world.queue), WORKSPACE, None)
    return [one.serial for one in shown.versions]


async def test_an_older_version_follows_under_a_new_serial_and_nothing_is_deleted(
    world: World,
) -> None:
    await keep(world, 1, 2, 7)

    shown = await restore(world, 2)

    assert shown.newest is not None
    assert (shown.newest.version, shown.newest.serial, shown.newest.restored_from) == (4, 8, 2)
    assert [one.id for one in shown.newest.resources] == ["id-2"]
    assert [(one.version, one.serial) for one in shown.versions] == [(4, 8), (3, 7), (2, 2), (1, 1)]
    listed = await list_workspaces(world.deps, world.user, InstallId(world.queue))
    assert [one.newest for one in listed.items] == [shown.newest]
    audit = await list_audit(world.deps, world.user, "", 50)
    told = next(entry for entry in audit.items if entry.action == "tf_state_restored")
    assert told.detail == {"reason": "the newest was a mistake", "version": "2", "serial": "8"}


async def test_a_runner_is_told_which_serial_is_inside_and_goes_on_from_the_new_one(
    world: World,
) -> None:
    await keep(world, 1, 2, 7)
    await restore(world, 2)

    offer = await begin(world)
    found = await read(world, offer)

    assert found is not None
    assert (found.header.serial, found.header.sealed_serial) == (8, 2)
    assert found.sealed == state(2).sealed
    await lock(world, offer)
    with pytest.raises(StateRefused, match="newer serial than 8"):
        await write(world, offer, state(8))
    assert await write(world, offer, state(9)) == 5


async def test_restoring_again_what_is_restored_changes_nothing(world: World) -> None:
    await keep(world, 1, 2)

    first, again = await restore(world, 1), await restore(world, 1)

    assert again == first
    assert await list_serials(world) == [3, 2, 1]


async def test_a_restored_version_can_be_left_and_taken_up_again(world: World) -> None:
    await keep(world, 1, 2)
    await restore(world, 1)

    await restore(world, 2)
    shown = await restore(world, 3)

    assert shown.newest is not None
    assert (shown.newest.version, shown.newest.serial, shown.newest.restored_from) == (5, 5, 1)
    found = await read(world, await begin(world))
    assert found is not None
    assert (found.header.sealed_serial, found.sealed) == (1, state(1).sealed)
    assert await count_blobs(world) == 2


async def test_the_current_version_and_one_that_never_was_are_refused(world: World) -> None:
    with pytest.raises(NotFound, match="no version 1 of the state of `component:db`"):
        await restore(world, 1)
    await keep(world, 1, 2)

    with pytest.raises(StateRefused, match="version 2 is the state of `component:db` already"):
        await restore(world, 2)
    with pytest.raises(NotFound, match="no version 3"):
        await restore(world, 3)

    assert await list_serials(world) == [2, 1]


async def test_a_version_of_another_lineage_is_refused(world: World) -> None:
    await keep(world, 1, 2)
    strange = update(table).where(table.c.version == 1).values(lineage="another")
    await world.deps.db.write(lambda tx: tx.run(strange).rowcount)

    with pytest.raises(StateRefused, match="version 1 cannot follow: it is of another lineage"):
        await restore(world, 1)

    assert await list_serials(world) == [2, 1]


@pytest.mark.parametrize("lane", [WORKSPACE, "sandbox"])
async def test_nothing_is_restored_while_a_job_holds_the_lane(world: World, lane: str) -> None:
    await keep(world, 1, 2)
    offer = await begin(world, lane)
    if lane == WORKSPACE:
        await lock(world, offer)

    with pytest.raises(Conflict, match=f"works on lane `{lane}`"):
        await restore(world, 1)

    assert await list_serials(world) == [2, 1]


async def test_a_lane_that_waits_for_a_look_is_no_hindrance(world: World) -> None:
    offer = await begin_with(world, 1, 2)
    await lose(world, offer)

    shown = await restore(world, 1)

    assert shown.newest is not None
    assert shown.newest.serial == 3
    await release_lane(world.deps, world.user, InstallId(world.queue), WORKSPACE, "restored")
    assert await read(world, await begin(world)) is not None


async def test_who_may_only_look_or_is_a_stranger_restores_nothing(world: World) -> None:
    await keep(world, 1, 2)
    viewer = replace(world.user, grants=(Grant(Role.VIEWER),))

    with pytest.raises(Forbidden):
        await restore(world, 1, viewer)
    with pytest.raises(NotFound, match="no such install"):
        await restore(world, 1, await make_org(world.deps, "other"))

    assert await list_serials(world) == [2, 1]


async def test_only_people_restore(world: World) -> None:
    offer = await begin_with(world, 1)
    posed = state(3)
    header = posed.header.model_copy(update={"sealed_serial": 1})

    with pytest.raises(InvalidInput, match="sealed_serial"):
        await write(world, offer, posed.model_copy(update={"header": header}))


@pytest.mark.parametrize(
    "wish",
    [{}, {"version": 1, "execution_id": "exe_" + "0" * 26}, {"version": 0}, {"version": 2**31}],
)
def test_a_wish_names_one_version_or_one_execution(wish: dict[str, object]) -> None:
    with pytest.raises(ValidationError, match="version"):
        RestoreState.model_validate({"reason": "a slip", **wish})


async def test_a_plan_that_waits_for_approval_is_stale_after_a_restore(
    deps: Deps, user: User
) -> None:
    life = await provision(deps, user)
    plans = [plan_at(2), plan_at(3)]
    life.answers["plan component:network"] = list(plans)
    workflow = await life.start(WorkflowKind.DEPLOY, components=["network"], approve_all=False)
    await life.run()
    await store(life, workflow, 1, 2)
    wish = RestoreState(version=1, reason="back to the first")

    install = InstallId(life.install)
    await rescued_states.restore_state(deps, user, install, "component:network", wish)
    await life.approve(workflow, "network.approve")
    await life.run()

    gate = (await life.steps(workflow))["network.approve"]
    assert (gate.state, gate.digest) == (StepState.ACTIVE, plans[1].outputs["digest"])
    assert "apply component:network" not in life.ran
    await life.approve(workflow, "network.approve")
    await life.run()
    assert "apply component:network" in life.ran


def plan_at(serial: int) -> Outcome:
    return succeed(digest=digest_of(serial), noop=False, serial=serial, outputs={})


async def store(life: InstallFixture, workflow: str, *serials: int) -> None:
    """Store versions as if an apply had written them before the plan."""
    job = (await life.steps(workflow))["network.plan"].job_id
    shown = await jobs.show_job(life.deps, life.user, JobId(job or ""))
    held = (ExecutionId(shown.executions[-1].id), 1)
    for serial in serials:
        new = NewStateVersion(serial, "line", str(serial), 1, f"blob-{serial}", [])
        add = partial(
            tf_states.restore_version,
            org=life.user.org,
            held=held,
            queue=QueueId(life.install),
            workspace="component:network",
            new=new,
        )
        await life.deps.db.write(add)
