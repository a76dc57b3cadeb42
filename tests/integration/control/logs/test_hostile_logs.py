"""Logs of a hostile runner: bounded on the way in, harmless once they are stored."""

import os
from dataclasses import replace

import pytest
import zstandard
from sqlalchemy import update

from exclave.base.errors import InvalidInput
from exclave.control.deps import Deps
from exclave.control.logs import merge
from exclave.control.logs import search as log_search
from exclave.control.logs.logs import append_log, follow_log
from exclave.control.logs.merge import merge_logs
from exclave.control.runtime.log_limits import LogFull, LogLimits
from exclave.control.runtime.rates import RateLimited
from exclave.domain.identity import OrgId
from exclave.domain.jobs import ExecutionId
from exclave.storage.engine.database import Tx
from exclave.storage.tables.work import executions, log_segments
from exclave.wire.runner import Offer
from tests.integration.control.conftest import World
from tests.integration.control.logs.logs_kit import begin, finish, pack, piece, send, texts
from tests.support.world import enrol_fake_runner, make_install, make_org

JUNK = os.urandom(1 << 16)


def make_bomb(size: int) -> bytes:
    packer = zstandard.ZstdCompressor(level=1, write_content_size=False).compressobj()
    return packer.compress(b"\n" * size) + packer.flush()


def pad_frame(data: bytes, blocks: int) -> bytes:
    """Make a valid frame with so many empty blocks before its content."""
    header = b"\x28\xb5\x2f\xfd\x00\x58"
    return header + b"\0\0\0" * blocks + (len(data) << 3 | 1).to_bytes(3, "little") + data


async def append(world: World, offer: Offer, body: bytes) -> None:
    execution = ExecutionId(offer.execution_id)
    await append_log(world.deps, world.peer.who, execution, offer.epoch, 0, body)


async def poison(world: World, offer: Offer, at: int, body: bytes, end: int = 0) -> None:
    """Replace a stored piece, as versions before stored it: with no word about its size."""

    def change(tx: Tx) -> str:
        mine = (log_segments.c.execution_id == offer.execution_id, log_segments.c.start == at)
        values = {"stored": None} | ({"end": end} if end else {})
        row = tx.run(update(log_segments).where(*mine).values(values).returning(log_segments)).one()
        if end:
            mine_too = executions.c.id == offer.execution_id
            tx.run(update(executions).where(mine_too).values(log_bytes=end))
        return str(row.blob)

    await world.deps.blobs.put(await world.deps.db.write(change), body)


async def count_pieces(deps: Deps) -> int:
    return len(await deps.blobs.list_keys("logs"))


@pytest.mark.parametrize(
    "body",
    [
        pack(piece("a")) + JUNK,
        pack(piece("a")) + pack(piece("b")),
        pack(piece("a")) + make_bomb(8 << 20),
        make_bomb(8 << 20),
        pack(piece("a"))[:-1],
        b"\x50\x2a\x4d\x18\x04\0\0\0abcd" + pack(piece("a")),
        pad_frame(piece("a"), 1000),
    ],
    ids=["junk", "two frames", "bomb behind", "bomb", "cut", "skippable frame", "padding"],
)
async def test_a_piece_is_exactly_one_honest_frame(world: World, body: bytes) -> None:
    offer, found = await begin(world)

    with pytest.raises(InvalidInput):
        await append(world, offer, body)

    assert await count_pieces(world.deps) == 0
    assert await texts(world, found) == []


async def test_a_frame_that_does_not_name_its_size_is_fine(world: World) -> None:
    offer, found = await begin(world)

    await append(world, offer, pad_frame(piece("a"), 0))

    assert await texts(world, found) == ["a"]


async def test_a_log_ends_at_its_limit_and_the_job_goes_on(world: World) -> None:
    small = replace(world.deps, log_limits=LogLimits(bytes=100, pieces=3))
    world = replace(world, deps=small)
    offer, found = await begin(world)
    end = 0
    for n in range(3):
        end = await send(world, offer, end, piece("a", first=n))

    with pytest.raises(LogFull, match="3 pieces"):
        await send(world, offer, end, piece("b"))
    world = replace(world, deps=replace(small, log_limits=LogLimits(bytes=100)))
    with pytest.raises(LogFull, match="100 bytes"):
        await send(world, offer, end, piece("b" * 100))

    assert await texts(world, found) == ["a", "a", "a"]
    await finish(world, offer, end + 1000)
    assert await count_pieces(world.deps) == 3


async def test_very_many_tiny_pieces_have_to_wait(world: World) -> None:
    offer, _ = await begin(world)
    end = 0
    for n in range(3):
        end = await send(world, offer, end, piece("a", first=n))

    def count_up(tx: Tx) -> None:
        tx.run(update(executions).values(log_pieces=1001))

    await world.deps.db.write(count_up)
    with pytest.raises(RateLimited) as refused:
        await send(world, offer, end, piece("b"))
    world.clock.advance(1)

    assert refused.value.facts["retry_after_s"] == 1
    assert await send(world, offer, end, piece("b")) > end


@pytest.mark.parametrize("rest", [JUNK, make_bomb(64 << 20)], ids=["junk", "bomb"])
async def test_what_lies_behind_a_stored_piece_is_never_looked_at(
    world: World, rest: bytes
) -> None:
    offer, found = await begin(world)
    middle = await send(world, offer, 0, piece("a"))
    end = await send(world, offer, middle, piece("b"))
    await poison(world, offer, 0, pack(piece("a")) + rest)
    await poison(world, offer, middle, pack(piece("b")) + rest)

    before = await texts(world, found)
    matches = await log_search.search_job(world.deps, world.user, found, "b")
    await finish(world, offer, end)
    await merge_logs(world.deps)

    assert before == ["a", "b"]
    assert [match.record.text for match in matches.items] == ["b"]
    assert await texts(world, found) == ["a", "b"]
    stored = [await world.deps.blobs.get(key) for key in await world.deps.blobs.list_keys("logs")]
    assert sum(map(len, stored)) < 100, "the merged piece is clean"


async def test_a_damaged_part_of_a_log_is_named_and_the_rest_is_read(world: World) -> None:
    """Such as versions before merged it: junk between frames, a bomb, a row that claims more."""
    offer, found = await begin(world)
    end = 0
    starts = []
    for n, text in enumerate(("a", "b", "c", "d", "e", "f")):
        starts.append(end)
        end = await send(world, offer, end, piece(text, first=n))
    await poison(world, offer, starts[1], JUNK)
    await poison(world, offer, starts[3], b"")
    await world.deps.blobs.delete((await world.deps.blobs.list_keys("logs"))[4])
    size = end - starts[5]
    await poison(world, offer, starts[5], pack(piece("f", first=5)) + JUNK, end=1 << 50)

    shown = await texts(world, found)
    page = await log_search.search_job(world.deps, world.user, found, "left out")
    await finish(world, offer, 1 << 50)
    await merge_logs(world.deps)
    later = await texts(world, found)

    lost = "(a part of the log is left out: it is damaged or lost)"
    assert shown == later == ["a", lost, "c", lost, lost, "f", lost]
    assert [match.record.dropped for match in page.items[:2]] == [starts[2] - starts[1]] * 2
    assert page.items[-1].record.dropped == (1 << 50) - starts[5] - size
    assert await merge_logs(world.deps) == 0, "it is not tried again"


async def test_following_a_damaged_log_ends_with_the_job(world: World) -> None:
    offer, found = await begin(world)
    middle = await send(world, offer, 0, piece("a"))
    end = await send(world, offer, middle, piece("b"))
    await poison(world, offer, middle, JUNK)
    await finish(world, offer, end)

    seen = [
        record.text
        async for record in follow_log(world.deps, world.user, found, execution=None, offset=0)
    ]

    assert seen[0] == "a"
    assert "left out" in seen[1]


async def test_a_log_of_many_pieces_is_merged_in_turns(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merge, "_PIECES", 5)
    monkeypatch.setattr(merge, "_GROUPS", 1)
    offer, found = await begin(world)
    end = 0
    for n in range(23):
        end = await send(world, offer, end, piece(f"line {n}", first=n))
    await finish(world, offer, end)

    turns = await merge_logs(world.deps)

    assert turns == 6
    assert await count_pieces(world.deps) == 5
    assert await texts(world, found) == [f"line {n}" for n in range(23)]


async def test_a_log_that_cannot_be_merged_stops_no_other_and_is_given_up_in_the_end(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = await make_org(world.deps, "good")
    queue = await make_install(world.deps, good)
    other = World(
        world.deps, world.clock, good, queue, await enrol_fake_runner(world.deps, good, queue)
    )
    for each in (world, other):
        offer, _ = await begin(each)
        middle = await send(each, offer, 0, piece("a"))
        await finish(each, offer, await send(each, offer, middle, piece("b")))
    bad, merge_log = world.user.org, merge.merge_log
    tried: list[str] = []

    async def fail_sometimes(deps: Deps, org: OrgId, execution: ExecutionId, at: int) -> bool:
        tried.append(org)
        if org == bad:
            raise MemoryError
        return await merge_log(deps, org, execution, at)

    monkeypatch.setattr(merge, "merge_log", fail_sometimes)
    turns = [await merge_logs(world.deps), await merge_logs(world.deps)]
    for _ in range(30):
        world.clock.advance(24 * 3600)
        await merge_logs(world.deps)

    assert turns == [2, 0], "a failed one rests for a while"
    assert (tried.count(bad), tried.count(good.org)) == (10, 1)
    assert world.deps.chores.of(merge.CHORE).rows_failed == 10
    assert await count_pieces(world.deps) == 3


async def test_a_log_of_one_piece_needs_no_merging_until_there_is_another(world: World) -> None:
    offer, found = await begin(world)
    data = piece("a")
    await send(world, offer, 0, data)
    await finish(world, offer, len(data))

    early = await merge_logs(world.deps)
    await send(world, offer, len(data), piece("late"))

    assert (early, await merge_logs(world.deps)) == (0, 1)
    assert await count_pieces(world.deps) == 1
    assert await texts(world, found) == ["a", "late"]


async def test_a_try_to_merge_is_counted_before_it_begins(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer, _ = await begin(world)
    middle = await send(world, offer, 0, piece("a"))
    await finish(world, offer, await send(world, offer, middle, piece("b")))

    async def die(*_: object) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(merge, "merge_log", die)
    with pytest.raises(KeyboardInterrupt):
        await merge_logs(world.deps)

    assert await merge_logs(world.deps) == 0, "what killed a server is not its first work again"


async def test_a_search_looks_at_so_many_records_pieces_and_bytes_per_call(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer, found = await begin(world)
    end = 0
    for n in range(12):
        end = await send(world, offer, end, piece(f"line {n}", f"more {n}", first=2 * n))

    async def search() -> tuple[list[str], int]:
        seen: list[str] = []
        cursor, calls = "", 0
        while True:
            page = await log_search.search_job(world.deps, world.user, found, "LINE", cursor)
            seen += [match.record.text for match in page.items]
            calls += 1
            if page.next is None:
                return seen, calls
            cursor = page.next

    for name, value in (("_RECORDS", 5), ("_PIECES", 3), ("_BYTES", 70), ("_TEXT", 10)):
        with monkeypatch.context() as patch:
            patch.setattr(log_search, "_BATCH_PIECES", 2)
            patch.setattr(log_search, name, value)
            seen, calls = await search()
        assert seen == [f"line {n}" for n in range(12)]
        assert calls > 3
    assert (await search())[1] == 1
