"""Files that executions hand in: the newest counts, and only evidence comes late."""

import json

import pytest

from exclave.base.errors import InvalidInput, NotFound
from exclave.domain.jobs import ExecutionId, Superseded
from tests.integration.control.conftest import World
from tests.integration.control.tf_kit import begin, lose
from tests.support.files import get_file, get_job_file, put_file
from tests.support.world import enrol_fake_runner, make_install


async def test_the_newest_file_of_a_name_counts_and_its_queue_may_read_it(world: World) -> None:
    offer = await begin(world)
    execution = ExecutionId(offer.execution_id)
    for data in (b'{"a":  1}', b'{"b":  2}'):
        await put_file(world.deps, world.peer.who, execution, "plan.json", offer.epoch, data)
    other = await enrol_fake_runner(
        world.deps, world.user, await make_install(world.deps, world.user, "second")
    )

    assert await get_file(world.deps, world.peer.who, execution, "plan.json") == b'{"b":  2}'
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
            await put_file(world.deps, world.peer.who, execution, name, offer.epoch, b"{}")
    for name in ("journal.jsonl", "errored.tfstate.sealed"):
        await put_file(world.deps, world.peer.who, execution, name, offer.epoch, b"x")
    with pytest.raises(Superseded):
        await put_file(
            world.deps, world.peer.who, execution, "journal.jsonl", offer.epoch + 1, b"x"
        )

    assert await get_job_file(world.deps, world.user, found, "journal.jsonl") == b"x"


async def test_a_plan_is_made_readable_when_it_is_handed_in(world: World) -> None:
    offer = await begin(world)
    execution = ExecutionId(offer.execution_id)
    evil = "a.b\x1b]0;PWNED\x07\nPlan: nothing to do."
    plan = {
        "resources": [{"address": evil, "previous": evil, "action": "delete", "later": 1}],
        "drift": [{"address": evil}, {"address": 'a.b["c"]'}, {"address": 1}, None],
        "outputs": [{"name": evil}, {"name": "url"}],
    }
    data = json.dumps(plan).encode()

    await put_file(world.deps, world.peer.who, execution, "plan.json", offer.epoch, data)

    stored = json.loads(await get_file(world.deps, world.peer.who, execution, "plan.json"))
    unreadable = stored["resources"][0]["address"]
    assert unreadable.startswith("(unreadable address ")
    assert unreadable.endswith("a.b\\x1b]0;PWNED\\x07\\nPlan: nothing to do.)")
    assert stored["resources"] == [
        {"address": unreadable, "previous": unreadable, "action": "delete", "later": 1}
    ]
    assert stored["drift"] == [
        {"address": unreadable},
        {"address": 'a.b["c"]'},
        {"address": 1},
        None,
    ]
    assert stored["outputs"][0]["name"].startswith("(unreadable name ")
    assert stored["outputs"][1] == {"name": "url"}


@pytest.mark.parametrize("data", [b"", b"x", b"[]", b"[" * 100_000, b'{"a": NaN}', b"\xff"])
async def test_what_is_no_plan_is_refused_and_not_kept(world: World, data: bytes) -> None:
    offer = await begin(world)
    execution = ExecutionId(offer.execution_id)

    with pytest.raises(InvalidInput, match="is not a plan document"):
        await put_file(world.deps, world.peer.who, execution, "plan.json", offer.epoch, data)

    assert await world.deps.blobs.list_keys("attachments") == []
