"""Terraform states: fenced, ordered, locked; journals against states."""

import hashlib
import json
from collections.abc import Mapping, Sequence

import pytest

from exclave.base.errors import Conflict, NotFound, TooLarge
from exclave.control import jobs, tf_rescue, tf_states, tf_workspaces
from exclave.control.audit import list_audit
from exclave.control.installs import release_lane
from exclave.control.reconcile import list_orphans
from exclave.control.tf_workspaces import list_workspaces, show_workspace, unlock_workspace
from exclave.domain.identity import InstallId
from exclave.domain.jobs import ExecutionId, JobId, Superseded
from exclave.domain.terraform import LockHeld, StateRefused
from exclave.wire.runner import Offer
from exclave.wire.terraform import (
    MAX_ATTACHMENT,
    LockInfo,
    LockState,
    RestoreState,
    SealedState,
    StateHeader,
    StateResource,
    TfWorkspaceDetail,
    UnlockState,
)
from tests.files_kit import get_file, get_job_file, get_state, put_file, put_state
from tests.integration.control.conftest import World
from tests.world import Peer, job, make_install, make_org, make_peer, run_workflow

WORKSPACE = "component:db"


def state(serial: int, lineage: str = "line", text: str = "", ids: str = "1") -> SealedState:
    header = StateHeader(
        serial=serial,
        lineage=lineage,
        sha256=hashlib.sha256(f"{serial}{text}".encode()).hexdigest(),
        resources=[StateResource(address="terraform_data.a", type="terraform_data", id=ids)],
    )
    return SealedState(header=header, sealed=f"sealed {serial} {text}".encode())


async def begin(world: World, workspace: str = WORKSPACE, peer: Peer | None = None) -> Offer:
    who = peer or world.peer
    step = job("apply", lanes=[workspace], mutating=True)
    await run_workflow(world.deps, world.user, who.who.queue, step)
    offer = (await who.poll()).offers[0]
    await who.start(offer.execution_id, offer.epoch)
    return offer


async def lock(
    world: World, offer: Offer, lock_id: str = "lock-1", workspace: str = WORKSPACE
) -> None:
    wish = LockState(
        workspace=workspace, epoch=offer.epoch, lock=LockInfo(id=lock_id, who="me@host")
    )
    await tf_states.lock_state(world.deps, world.peer.who, ExecutionId(offer.execution_id), wish)


async def unlock(world: World, offer: Offer, lock_id: str = "lock-1") -> None:
    wish = UnlockState(workspace=WORKSPACE, epoch=offer.epoch, lock_id=lock_id)
    await tf_states.unlock_state(world.deps, world.peer.who, ExecutionId(offer.execution_id), wish)


async def write(
    world: World, offer: Offer, given: SealedState, lock_id: str = "lock-1", *, ws: str = WORKSPACE
) -> int:
    reply = await put_state(
        world.deps, world.peer.who, ExecutionId(offer.execution_id), offer.epoch, ws, lock_id, given
    )
    return reply.version


async def read(world: World, offer: Offer, workspace: str = WORKSPACE) -> SealedState | None:
    who, execution = world.peer.who, ExecutionId(offer.execution_id)
    return await get_state(world.deps, who, execution, offer.epoch, workspace)


async def lose(world: World, offer: Offer) -> JobId:
    page = await jobs.list_jobs(
        world.deps, world.user, cursor="", limit=1, queue=None, workflow=None, state="running"
    )
    await jobs.declare_lost(world.deps, world.user, JobId(page.items[0].id), "gone")
    world.peer.alive.remove(offer.execution_id)
    return JobId(page.items[0].id)


async def count_blobs(world: World) -> int:
    return len(await world.deps.blobs.list_keys("tf-states"))


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


async def test_a_state_is_written_only_on_its_own_lane(world: World) -> None:
    offer = await begin(world)

    with pytest.raises(Superseded):
        await lock(world, offer, workspace="component:other")
    with pytest.raises(Superseded):
        await write(world, offer, state(1), ws="component:other")


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
    spy = await make_peer(world.deps, stranger, queue)
    neighbour = await make_peer(
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
        await tf_workspaces.list_workspaces(world.deps, stranger, install)
    with pytest.raises(NotFound):
        await list_orphans(world.deps, stranger, install)


async def test_the_newest_file_of_a_name_counts_and_its_queue_may_read_it(world: World) -> None:
    offer = await begin(world)
    execution = ExecutionId(offer.execution_id)
    for data in (b"one", b"two"):
        await put_file(world.deps, world.peer.who, execution, "plan.json", offer.epoch, data)
    other = await make_peer(
        world.deps, world.user, await make_install(world.deps, world.user, "second")
    )

    assert await get_file(world.deps, world.peer.who, execution, "plan.json") == b"two"
    assert len(await world.deps.blobs.list_keys("attachments")) == 1
    with pytest.raises(NotFound):
        await get_file(world.deps, other.who, execution, "plan.json")
    with pytest.raises(NotFound):
        await get_file(world.deps, world.peer.who, execution, "plan.sealed")


async def test_after_the_end_only_evidence_is_taken(world: World) -> None:
    offer = await begin(world)
    execution = ExecutionId(offer.execution_id)
    found = await lose(world, offer)

    for name in ("plan.json", "plan.sealed"):
        with pytest.raises(Superseded):
            await put_file(world.deps, world.peer.who, execution, name, offer.epoch, b"x")
    for name in ("journal.jsonl", "errored.tfstate.sealed"):
        await put_file(world.deps, world.peer.who, execution, name, offer.epoch, b"x")
    with pytest.raises(Superseded):
        await put_file(
            world.deps, world.peer.who, execution, "journal.jsonl", offer.epoch + 1, b"x"
        )

    assert await get_job_file(world.deps, world.user, found, "journal.jsonl") == b"x"


def event(kind: str, address: str, identity: str = "", action: str = "create") -> dict[str, str]:
    return {
        "type": kind,
        "addr": address,
        "action": action,
        "resource_type": address.split(".")[-2],
        "id_key": "id",
        "id_value": identity,
        "at": "2026-01-01T00:00:00Z",
    }


async def hand_in_journal(
    world: World, offer: Offer, lines: Sequence[Mapping[str, str]], torn: bytes = b""
) -> None:
    data = b"\n".join(json.dumps(line).encode() for line in lines) + torn
    execution = ExecutionId(offer.execution_id)
    await put_file(world.deps, world.peer.who, execution, "journal.jsonl", offer.epoch, data)


async def test_what_was_made_and_is_not_in_the_state_is_listed_to_import(world: World) -> None:
    offer = await begin(world)
    await lock(world, offer)
    await write(world, offer, state(1, ids="id-a"))
    lines = [
        {"type": "begin", "workspace": WORKSPACE},
        event("apply_start", "terraform_data.a"),
        event("apply_complete", "terraform_data.a", "id-a"),
        event("apply_start", 'module.m.terraform_data.b["x"]'),
        event("apply_complete", 'module.m.terraform_data.b["x"]', 'id "b" ${x}'),
        event("apply_start", "terraform_data.c"),
        event("apply_start", "terraform_data.d"),
        event("apply_errored", "terraform_data.d"),
        event("apply_start", "terraform_data.e", action="delete"),
    ]
    await hand_in_journal(world, offer, lines, torn=b'\n{"type": "apply_sta')
    install = InstallId(world.queue)
    assert (await list_orphans(world.deps, world.user, install)).orphans == []
    await lose(world, offer)

    found = (await list_orphans(world.deps, world.user, install)).orphans

    assert [(one.address, one.certainty, one.id) for one in found] == [
        ('module.m.terraform_data.b["x"]', "created", 'id "b" ${x}'),
        ("terraform_data.c", "unknown", ""),
    ]
    assert found[0].import_block == (
        'import {\n  to = module.m.terraform_data.b["x"]\n  id = "id \\"b\\" $${x}"\n}\n'
    )
    assert found[1].import_block == ""
    await release_lane(world.deps, world.user, install, WORKSPACE, "imported")
    assert (await list_orphans(world.deps, world.user, install)).orphans == []
    assert len((await list_orphans(world.deps, world.user, install, every=True)).orphans) == 2


@pytest.mark.parametrize("wrote_a_state", [True, False])
async def test_what_is_being_replaced_does_not_hide_its_successor(
    world: World, wrote_a_state: bool
) -> None:
    first = await begin(world)
    await lock(world, first)
    await write(world, first, state(1, ids="old"))
    await unlock(world, first)
    await world.peer.hand_in(first.execution_id, first.epoch)
    offer = await begin(world)
    deletes = [event("apply_start", "terraform_data.a", "old", "delete"),
               event("apply_complete", "terraform_data.a", action="delete")]  # fmt: skip
    if wrote_a_state:
        await lock(world, offer)
        await write(world, offer, state(2, ids="old"))
    lines = [
        {"type": "begin", "workspace": WORKSPACE},
        *(deletes if wrote_a_state else []),
        event("apply_start", "terraform_data.a"),
    ]
    await hand_in_journal(world, offer, lines)
    await lose(world, offer)

    found = (await list_orphans(world.deps, world.user, InstallId(world.queue))).orphans

    assert [(one.address, one.certainty) for one in found] == [("terraform_data.a", "unknown")]


async def test_another_resource_at_the_same_address_does_not_hide_an_orphan(world: World) -> None:
    offer = await begin(world)
    await lock(world, offer)
    await write(world, offer, state(1, ids="newer"))
    lines = [
        {"type": "begin", "workspace": WORKSPACE},
        event("apply_complete", "terraform_data.a", "older"),
    ]
    await hand_in_journal(world, offer, lines)
    await lose(world, offer)

    found = (await list_orphans(world.deps, world.user, InstallId(world.queue))).orphans

    assert [one.id for one in found] == ["older"]


@pytest.mark.parametrize("heard_all", [False, True])
async def test_what_was_planned_is_told_where_the_runner_did_not_hear_all(
    world: World, heard_all: bool
) -> None:
    offer = await begin(world)
    await lock(world, offer)
    await write(world, offer, state(1, ids="kept"))
    planned = [
        {"type": "planned_change", "addr": f"terraform_data.{name}", "action": action}
        for name, action in [("a", "create"), ("b", "create"), ("c", "update"), ("d", "replace")]
    ]
    lines = [
        {"type": "begin", "workspace": WORKSPACE}, *planned,
        event("apply_complete", "terraform_data.b", "made"),
        *([{"type": "end"}] if heard_all else []),
    ]  # fmt: skip
    await hand_in_journal(world, offer, lines)
    await lose(world, offer)

    found = (await list_orphans(world.deps, world.user, InstallId(world.queue))).orphans

    told = [(one.address, one.certainty) for one in found]
    unheard = [] if heard_all else [("terraform_data.d", "planned")]
    assert told == [("terraform_data.b", "created"), *unheard]


async def hand_in_rescued(world: World, offer: Offer, given: SealedState) -> None:
    execution, name = ExecutionId(offer.execution_id), "errored.tfstate.sealed"
    await put_file(world.deps, world.peer.who, execution, name, offer.epoch, given.pack())


async def restore(world: World, offer: Offer) -> TfWorkspaceDetail:
    wish = RestoreState(execution_id=offer.execution_id, reason="it was checked")
    install = InstallId(world.queue)
    return await tf_rescue.restore_state(world.deps, world.user, install, WORKSPACE, wish)


async def test_a_rescued_state_becomes_the_next_version_while_its_lane_waits(world: World) -> None:
    offer = await begin(world)
    await lock(world, offer)
    await write(world, offer, state(1))
    await lose(world, offer)
    await hand_in_rescued(world, offer, state(3))
    install = InstallId(world.queue)
    listed = await tf_rescue.list_rescued(world.deps, world.user, install, WORKSPACE)

    shown = await restore(world, offer)

    assert [(one.serial, one.misfit) for one in listed.items] == [(3, "")]
    assert shown.newest is not None
    assert (shown.newest.version, shown.newest.serial) == (2, 3)
    again = await tf_rescue.list_rescued(world.deps, world.user, install, WORKSPACE)
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
