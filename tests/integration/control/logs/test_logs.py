"""Log streams: by offset, without gap or double, fenced, searchable."""

import asyncio

import pytest

from exclave.base.errors import InvalidInput, NotFound, TooLarge
from exclave.control.installs.installs import release_lane
from exclave.control.logs import search
from exclave.control.logs.logs import WrongOffset, append_log, follow_log, read_from, read_log
from exclave.control.logs.merge import merge_log, merge_logs
from exclave.domain.jobs import ExecutionId, Superseded
from exclave.wire.logs import MAX_SEGMENT
from exclave.wire.runner import Outcome
from tests.integration.control.conftest import World
from tests.integration.control.logs.logs_kit import begin, pack, piece, send, texts
from tests.support.world import enrol_fake_runner, job, make_install, make_org, run_workflow


async def test_pieces_are_read_back_in_order_and_from_any_offset(world: World) -> None:
    offer, found = await begin(world)
    middle = await send(world, offer, 0, piece("a", "b"))
    await send(world, offer, middle, piece("c", first=2))

    assert await texts(world, found) == ["a", "b", "c"]
    assert await texts(world, found, middle) == ["c"]


async def test_a_repeated_piece_is_stored_once_and_the_sender_told_where_to_go_on(
    world: World,
) -> None:
    offer, found = await begin(world)
    end = await send(world, offer, 0, piece("a"))

    with pytest.raises(WrongOffset) as refused:
        await send(world, offer, 0, piece("a"))
    with pytest.raises(WrongOffset):
        await send(world, offer, end + 5, piece("z"))

    assert refused.value.facts["next_offset"] == end
    assert await texts(world, found) == ["a"]


async def test_two_senders_of_the_same_piece_store_it_once(world: World) -> None:
    offer, found = await begin(world)
    data = piece("a", "b")

    answers = await asyncio.gather(
        *[send(world, offer, 0, data) for _ in range(5)], return_exceptions=True
    )

    assert sum(answer == len(data) for answer in answers) == 1
    assert await texts(world, found) == ["a", "b"]


async def test_a_log_may_be_completed_after_the_result(world: World) -> None:
    offer, found = await begin(world)
    data = piece("a", "b")
    done = Outcome(state="succeeded", reason="completed", log_end=len(data))
    await world.peer.hand_in(offer.execution_id, offer.epoch, done)
    early = await read_log(world.deps, world.user, found, execution=None, offset=0, limit=10)

    await send(world, offer, 0, data)

    late = await read_log(world.deps, world.user, found, execution=None, offset=0, limit=10)
    assert (early.complete, late.complete) == (False, True)


async def test_an_execution_that_lost_its_lane_writes_no_more_log(world: World) -> None:
    await run_workflow(
        world.deps, world.user, world.queue, job("one", lanes=["component:a"], mutating=True)
    )
    offer = (await world.peer.poll()).offers[0]
    await world.peer.start(offer.execution_id, offer.epoch)
    await world.peer.restarted().poll()
    await release_lane(world.deps, world.user, world.queue, "component:a", "checked")  # type: ignore[arg-type]

    with pytest.raises(Superseded):
        await send(world, offer, 0, piece("zombie"))


async def test_another_runner_cannot_write_the_log(world: World) -> None:
    offer, found = await begin(world)
    stranger_org = await make_org(world.deps, "evil")
    stranger = await enrol_fake_runner(
        world.deps, stranger_org, await make_install(world.deps, stranger_org)
    )

    with pytest.raises(NotFound):
        await append_log(
            world.deps,
            stranger.who,
            ExecutionId(offer.execution_id),
            offer.epoch,
            0,
            pack(piece("x")),
        )
    with pytest.raises(NotFound):
        await read_log(world.deps, stranger_org, found, execution=None, offset=0, limit=1)


async def test_bombs_and_rubbish_are_refused(world: World) -> None:
    offer, _ = await begin(world)
    execution = ExecutionId(offer.execution_id)

    async def attempt(body: bytes) -> None:
        await append_log(world.deps, world.peer.who, execution, offer.epoch, 0, body)

    with pytest.raises(TooLarge):
        await attempt(pack(b"\n" * (MAX_SEGMENT + 1)))
    for body in (b"not zstd", pack(b""), pack(b"half a record"), b""):
        with pytest.raises(InvalidInput):
            await attempt(body)


async def test_following_yields_what_arrives_until_the_job_ends(world: World) -> None:
    offer, found = await begin(world)
    seen: list[str] = []

    async def follow() -> None:
        async for record in follow_log(world.deps, world.user, found, execution=None, offset=0):
            seen.append(record.text)

    following = asyncio.create_task(follow())
    end = await send(world, offer, 0, piece("a"))
    await asyncio.sleep(0.02)
    end = await send(world, offer, end, piece("b", first=1))
    done = Outcome(state="succeeded", reason="completed", log_end=end)
    await world.peer.hand_in(offer.execution_id, offer.epoch, done)
    await asyncio.wait_for(following, 5)

    assert seen == ["a", "b"]


async def test_following_goes_on_with_the_next_attempt(world: World) -> None:
    offer, found = await begin(world)
    await send(world, offer, 0, piece("first try"))
    restarted = world.peer.restarted()
    again = (await restarted.poll()).offers[0]
    await restarted.start(again.execution_id, again.epoch)
    data = piece("second try")
    await append_log(
        world.deps, restarted.who, ExecutionId(again.execution_id), again.epoch, 0, pack(data)
    )
    done = Outcome(state="succeeded", reason="completed", log_end=len(data))
    await restarted.hand_in(again.execution_id, again.epoch, done)

    records = [
        record.text
        async for record in follow_log(
            world.deps, world.user, found, execution=offer.execution_id, offset=0
        )
    ]

    assert records == ["first try", "second try"]


async def test_search_finds_text_in_a_job_and_over_an_install(world: World) -> None:
    offer, found = await begin(world)
    await send(world, offer, 0, piece("creating vpc", "creating Subnet", "done"))

    in_job = await search.search_job(world.deps, world.user, found, "SUBNET")
    over_install = await search.search_queue(world.deps, world.user, world.queue, "creating")

    assert [match.record.text for match in in_job.items] == ["creating Subnet"]
    assert [match.step for match in over_install.items] == ["one", "one"]


async def test_search_goes_on_at_its_cursor(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "_MATCHES", 2)
    offer, found = await begin(world)
    await send(world, offer, 0, piece(*[f"line {n}" for n in range(5)]))

    texts_found: list[str] = []
    cursor = ""
    while True:
        page = await search.search_job(world.deps, world.user, found, "line", cursor)
        texts_found += [match.record.text for match in page.items]
        if page.next is None:
            break
        cursor = page.next

    assert texts_found == [f"line {n}" for n in range(5)]


async def test_an_unreadable_record_is_shown_and_hides_nothing_else(world: World) -> None:
    offer, found = await begin(world)
    await send(world, offer, 0, piece("a") + b"rubbish\n" + piece("b"))

    assert await texts(world, found) == ["a", "(unreadable record)", "b"]


async def test_a_whole_log_is_merged_into_few_segments_and_reads_the_same(world: World) -> None:
    offer, found = await begin(world)
    end = 0
    for n in range(30):
        end = await send(world, offer, end, piece(f"line {n}", first=n))
    before = await texts(world, found)
    assert await merge_logs(world.deps) == 0  # not whole yet
    done = Outcome(state="succeeded", reason="completed", log_end=end)
    await world.peer.hand_in(offer.execution_id, offer.epoch, done)

    merged = await merge_logs(world.deps)

    assert (merged, await merge_logs(world.deps)) == (1, 0)
    assert await texts(world, found) == before
    assert await texts(world, found, end - len(piece("line 29", first=29))) == ["line 29"]
    assert len(await world.deps.blobs.list_keys("logs")) == 1


@pytest.mark.parametrize("moment", ["get", "put"])
async def test_two_servers_that_merge_the_same_log_lose_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """The other one is done before this one begins to read the pieces, or to put its own."""
    offer, found = await begin(world)
    end = 0
    for n in range(5):
        end = await send(world, offer, end, piece(f"line {n}", first=n))
    blobs, execution = world.deps.blobs, ExecutionId(offer.execution_id)
    call = getattr(blobs, moment)

    async def come_late(*args: object) -> object:
        monkeypatch.undo()
        await merge_log(world.deps, world.user.org, execution)
        return await call(*args)

    monkeypatch.setattr(blobs, moment, come_late)
    await merge_log(world.deps, world.user.org, execution)

    assert await texts(world, found) == [f"line {n}" for n in range(5)]
    assert len(await blobs.list_keys("logs")) == 1


async def test_a_reader_survives_a_merge_in_the_middle(world: World) -> None:
    offer, found = await begin(world)
    end = 0
    for n in range(10):
        end = await send(world, offer, end, piece(f"line {n}", first=n))
    reading = read_from(world.deps, world.user, ExecutionId(offer.execution_id), 0)
    first = (await anext(reading)).text

    await merge_log(world.deps, world.user.org, ExecutionId(offer.execution_id))

    assert [first, *[record.text async for record in reading]] == [f"line {n}" for n in range(10)]
    assert await texts(world, found) == [f"line {n}" for n in range(10)]
