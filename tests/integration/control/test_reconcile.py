"""Journals against states: what was made and is in no state is listed."""

import json
from collections.abc import Mapping, Sequence

import pytest

from exclave.control.installs import release_lane
from exclave.control.reconcile import list_orphans
from exclave.domain.identity import InstallId
from exclave.domain.jobs import ExecutionId
from exclave.wire.runner import Offer
from tests.files_kit import put_file
from tests.integration.control.conftest import World
from tests.integration.control.tf_kit import WORKSPACE, begin, lock, lose, state, unlock, write


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


@pytest.mark.parametrize("every", [True, False])
@pytest.mark.parametrize("wrote_a_state", [True, False])
async def test_what_is_being_replaced_does_not_hide_its_successor(
    world: World, wrote_a_state: bool, every: bool
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

    install = InstallId(world.queue)
    found = (await list_orphans(world.deps, world.user, install, every=every)).orphans

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
