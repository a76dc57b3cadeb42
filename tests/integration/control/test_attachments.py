"""Files that executions hand in: the newest counts, and only evidence comes late."""

import pytest

from exclave.base.errors import NotFound
from exclave.domain.jobs import ExecutionId, Superseded
from tests.files_kit import get_file, get_job_file, put_file
from tests.integration.control.conftest import World
from tests.integration.control.tf_kit import begin, lose
from tests.world import make_install, make_peer


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
