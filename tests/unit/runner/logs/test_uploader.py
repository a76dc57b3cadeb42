"""The uploader brings every byte once, in order, whatever the server answers."""

import asyncio
from pathlib import Path

import zstandard

from exclave.base.ids import SeededRandomness
from exclave.client.problems import ProxyTooLarge, RemoteProblem, Unreachable
from exclave.runner.logs.spool import SpoolLimits
from exclave.runner.logs.spooled_log import SpooledLog, bind_open_log
from exclave.wire.logs import MAX_SEGMENT, Stream
from exclave.wire.runner import LogReply
from tests.unit.runner.work_kit import ManualClock

OUT = Stream.STDOUT


class FakeServer:
    """Stores the stream as the control plane does; `faults` are raised first, one per request."""

    def __init__(self) -> None:
        self.stream = b""
        self.requests: list[int] = []
        self.faults: list[Exception | None] = []
        self.lose_reply = False
        self.grown = asyncio.Event()

    async def has(self, size: int) -> None:
        while len(self.stream) < size:
            self.grown.clear()
            await self.grown.wait()

    async def send(self, offset: int, frame: bytes) -> LogReply:
        data = zstandard.ZstdDecompressor().decompress(frame)
        self.requests.append(len(data))
        fault = self.faults.pop(0) if self.faults else None
        if fault is not None and not self.lose_reply:
            raise fault
        if offset != len(self.stream):
            raise RemoteProblem(
                409, "log_offset", "wrong place", facts={"next_offset": len(self.stream)}
            )
        assert data.endswith(b"\n")
        assert len(data) <= MAX_SEGMENT
        self.stream += data
        self.grown.set()
        if fault is not None:
            raise fault
        return LogReply(next_offset=len(self.stream))


def open_it(folder: Path, server: FakeServer, clock: ManualClock | None = None) -> SpooledLog:
    return SpooledLog(
        folder,
        server.send,
        clock=clock or ManualClock(),
        randomness=SeededRandomness(1),
        spool_limits=SpoolLimits(segment_bytes=4 << 20, keep_free_bytes=0),
    )


async def ship(log: SpooledLog) -> tuple[int, str]:
    ended = await log.close()
    await asyncio.wait_for(log.run(), 10)
    return ended


async def test_all_of_a_closed_log_arrives_in_whole_records(tmp_path: Path) -> None:
    server = FakeServer()
    log = open_it(tmp_path, server)
    for at in range(50_000):
        log.writer.write(OUT, b"line %d\n" % at)

    end, _ = await ship(log)

    assert len(server.stream) == end
    assert server.stream.count(b"\n") == 50_000
    assert log.backlog == 0
    assert await log.drain(1)


async def test_a_backlog_goes_in_large_requests(tmp_path: Path) -> None:
    server = FakeServer()
    log = open_it(tmp_path, server)
    log.writer.write(OUT, (b"x" * 99 + b"\n") * 100_000)

    end, _ = await ship(log)

    assert len(server.stream) == end
    assert len(server.requests) < 20


async def test_an_empty_log_ends_without_a_request(tmp_path: Path) -> None:
    server = FakeServer()
    log = open_it(tmp_path, server)

    assert (await ship(log))[0] == 0
    assert server.requests == []


async def test_a_lost_reply_doubles_nothing(tmp_path: Path) -> None:
    server = FakeServer()
    server.faults = [Unreachable("no answer"), None, Unreachable("no answer")]
    server.lose_reply = True
    log = open_it(tmp_path, server)
    log.writer.write(OUT, (b"x" * 99 + b"\n") * 8_000)

    end, _ = await ship(log)

    assert len(server.stream) == end
    assert server.stream.count(b"\n") == 8_000


async def test_failures_are_met_with_growing_pauses_and_retry_after_is_kept(tmp_path: Path) -> None:
    clock, server = ManualClock(), FakeServer()
    busy = RemoteProblem(429, "too_many", "slow down", facts={"retry_after_s": 40})
    server.faults = [Unreachable("down"), RemoteProblem(503, "unavailable", "later"), busy]
    log = open_it(tmp_path, server, clock)
    log.writer.write(OUT, b"one\n")
    before = clock.seconds

    end, _ = await ship(log)

    assert len(server.stream) == end > 0
    assert len(server.requests) == 4
    assert clock.seconds - before >= 40


async def test_a_superseded_execution_stops_quietly(tmp_path: Path) -> None:
    server = FakeServer()
    server.faults = [RemoteProblem(409, "superseded", "a newer execution holds the lanes")]
    log = open_it(tmp_path, server)
    log.writer.write(OUT, b"one\n")

    await asyncio.wait_for(log.run(), 5)

    assert len(server.requests) == 1
    assert await log.drain(1)


async def test_a_full_log_ends_the_upload_and_holds_nothing_up(tmp_path: Path) -> None:
    server = FakeServer()
    server.faults = [None, RemoteProblem(413, "log_full", "a log has at most so many bytes")]
    log = open_it(tmp_path, server)
    log.writer.write(OUT, (b"x" * 99 + b"\n") * 100_000)

    end, _ = await ship(log)

    assert 0 < len(server.stream) < end
    assert len(server.requests) == 2
    assert await log.drain(1)


async def test_too_many_small_pieces_are_sent_as_one_later(tmp_path: Path) -> None:
    clock, server = ManualClock(), FakeServer()
    server.faults = [RemoteProblem(429, "rate_limited", "too small", facts={"retry_after_s": 1})]
    log = open_it(tmp_path, server, clock)
    log.writer.write(OUT, b"one\n")

    end, _ = await ship(log)

    assert (len(server.stream), len(server.requests)) == (end, 2)


async def test_a_restarted_runner_asks_where_to_go_on(tmp_path: Path) -> None:
    server = FakeServer()
    first = open_it(tmp_path, server)
    first.writer.write(OUT, b"one\ntwo\n")
    task = asyncio.create_task(first.run())
    await server.has(1)
    task.cancel()

    again = open_it(tmp_path, server)
    again.writer.system("the runner was restarted")
    end, digest = await ship(again)

    assert len(server.stream) == end
    assert len(digest) == 64
    assert [line.split(b",")[0] for line in server.stream.splitlines()] == [b"[0", b"[1", b"[2"]


async def test_a_server_that_lost_its_log_ends_the_upload_instead_of_hanging(
    tmp_path: Path,
) -> None:
    server = FakeServer()
    log = open_it(tmp_path, server)
    log.writer.write(OUT, (b"x" * 99 + b"\n") * 100_000)
    task = asyncio.create_task(log.run())
    await server.has(log.end)
    server.stream = b""
    log.writer.write(OUT, b"more\n")

    await asyncio.wait_for(task, 5)

    assert await log.drain(1)
    assert server.stream == b""


async def test_live_output_is_gathered_a_little_and_never_lost(tmp_path: Path) -> None:
    clock, server = ManualClock(), FakeServer()
    log = open_it(tmp_path, server, clock)
    task = asyncio.create_task(log.run())
    for at in range(100):
        log.writer.write(OUT, b"line %d\n" % at)
        clock.seconds += 0.01
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    await log.close()

    await asyncio.wait_for(task, 5)

    assert server.stream.count(b"\n") == 100
    assert len(server.requests) < 80


async def test_drain_gives_up_after_its_time(tmp_path: Path) -> None:
    log = open_it(tmp_path, FakeServer())
    log.writer.write(OUT, b"one\n")

    assert not await log.drain(3)


async def test_opening_is_bound_to_clock_and_limits_once(tmp_path: Path) -> None:
    server = FakeServer()
    open_log = bind_open_log(ManualClock(), SeededRandomness(1))
    log = open_log(tmp_path, "exe", server.send)
    log.writer.write(OUT, b"one\n")

    end, _ = await log.close()
    await log.run()

    assert (log.end, log.backlog, len(server.stream)) == (end, 0, end)


class SmallServer(FakeServer):
    """Stands behind a proxy that lets only small bodies through."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    async def send(self, offset: int, frame: bytes) -> LogReply:
        size = len(zstandard.ZstdDecompressor().decompress(frame))
        if size > self._most:
            self.requests.append(size)
            raise ProxyTooLarge("POST /v1/executions/exe_1/log", size)
        return await super().send(offset, frame)


async def test_pieces_become_smaller_until_they_pass_a_proxy(tmp_path: Path) -> None:
    server = SmallServer(100_000)
    log = open_it(tmp_path, server)
    log.writer.write(OUT, b"a line of some length\n" * 100_000)

    end, _ = await ship(log)

    assert len(server.stream) == end
    assert sum(1 for size in server.requests if size > 100_000) < 5


async def test_a_proxy_that_lets_nothing_through_ends_the_upload(tmp_path: Path) -> None:
    server = SmallServer(10)
    log = open_it(tmp_path, server)
    log.writer.write(OUT, b"a line of some length\n" * 100_000)

    await ship(log)

    assert server.stream == b""
    assert len(server.requests) < 12
