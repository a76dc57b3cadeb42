"""Floods of output: bounded memory, bounded disk, exact counts, and a runner that stays awake."""

import asyncio
import hashlib
import os
import sys
from pathlib import Path

import pytest
import zstandard

from exclave.base.ids import SeededRandomness
from exclave.client.problems import RemoteProblem, Unreachable
from exclave.runner.logs.job_log import JobLog, LogLimits, open_log
from exclave.runner.logs.spool import SpoolLimits
from exclave.runner.logs.spooled_log import SpooledLog
from exclave.runner.processes.child import Command, start_child
from exclave.wire.logs import MAX_TEXT, Stream
from exclave.wire.runner import LogReply
from tests.unit.runner.work_kit import CLOCK, EXECUTION, close_and_check, join

MIB = 1 << 20
OUT, ERR = Stream.STDOUT, Stream.STDERR
ENV = {"PATH": os.environ["PATH"]}


def measure_memory() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


async def run_python(folder: Path, text: str, log: JobLog) -> float:
    """Run a program; tell the longest that the event loop was kept from its work meanwhile."""
    command = Command((sys.executable, "-I", "-c", text), ENV, folder)
    child = await start_child(command, folder=folder, execution_id=EXECUTION, log=log, clock=CLOCK)
    longest = 0.0
    while not child.has_exited:
        before = CLOCK.monotonic()
        await asyncio.sleep(0.01)
        longest = max(longest, CLOCK.monotonic() - before - 0.01)
    assert await child.close() == 0
    log.end_streams()
    return longest


async def test_a_flood_is_bounded_in_memory_and_on_disk_and_slows_nobody(tmp_path: Path) -> None:
    limits, spool_limits = LogLimits(4 * MIB, 2 * MIB), SpoolLimits(MIB, 16 * MIB, 0)
    log, spool = open_log(tmp_path / "log", CLOCK, limits, spool_limits)
    text = (
        "import sys\nline = b'x' * 99 + b'\\n'\n"
        "for _ in range(200): sys.stdout.buffer.write(line * 10000)\n"
        "sys.stdout.buffer.write(b'the very end\\n')"
    )
    before = measure_memory()

    longest = await run_python(tmp_path, text, log)
    grown = measure_memory() - before
    records = close_and_check(log, spool)

    assert grown < 40 * MIB
    assert spool.used_bytes < 8 * MIB
    assert longest < 0.25
    (gap,) = [one for one in records if one.dropped]
    shown = len(join(records, OUT))
    assert shown + gap.dropped - (200_000_000 + 13) in {0, 1}
    assert [one.text for one in records if one.stream is OUT][-1] == "the very end"


async def test_one_line_of_50_megabytes_is_cut_into_pieces(tmp_path: Path) -> None:
    log, spool = open_log(tmp_path / "log", CLOCK)
    text = "import sys; sys.stdout.write('ab' * 25_000_000); sys.stderr.write('end')"

    await run_python(tmp_path, text, log)
    records = close_and_check(log, spool)

    pieces = [one for one in records if one.stream is OUT]
    assert sum(len(one.text) for one in pieces) == 50_000_000
    assert all(len(one.text) <= MAX_TEXT for one in pieces)
    assert [one.partial for one in pieces] == [True] * (len(pieces) - 1) + [False]
    assert [one.text for one in records if one.stream is ERR] == ["end"]


async def test_bytes_that_are_not_text_pass_through_as_marks(tmp_path: Path) -> None:
    log, spool = open_log(tmp_path / "log", CLOCK)
    text = "import sys; sys.stdout.buffer.write(bytes(range(256)) * 1000)"

    await run_python(tmp_path, text, log)
    records = close_and_check(log, spool)

    expected = (bytes(range(256)) * 1000).decode(errors="replace")
    assert join(records, OUT) == expected + "\n"


async def test_many_empty_lines_are_all_there(tmp_path: Path) -> None:
    log, spool = open_log(tmp_path / "log", CLOCK)

    await run_python(tmp_path, "import sys; sys.stdout.write('\\n' * 60_000)", log)
    records = close_and_check(log, spool)

    assert len(records) == 60_000


async def test_a_prompt_without_a_line_end_is_seen_while_the_child_waits(tmp_path: Path) -> None:
    log, spool = open_log(tmp_path / "log", CLOCK)
    text = "import time; print('Continue? ', end='', flush=True); time.sleep(1); print('yes')"

    running = asyncio.create_task(run_python(tmp_path, text, log))
    await asyncio.sleep(0.8)
    seen = spool.read(0, 1000)
    await running

    assert b'"Continue? ",{"partial":true}' in seen
    assert join(close_and_check(log, spool), OUT) == "Continue? yes\n"


class BrokenLog:
    """A log whose disk is gone."""

    def write(self, stream: Stream, data: bytes) -> None:
        raise OSError(28, "No space left on device")

    def flush(self) -> None:
        raise OSError(28, "No space left on device")

    def end_streams(self) -> None:
        pass


async def test_a_broken_log_does_not_hold_up_the_child(tmp_path: Path) -> None:
    text = "import sys; sys.stdout.write('x' * 5_000_000)"

    await asyncio.wait_for(run_python(tmp_path, text, BrokenLog()), 10)  # type: ignore[arg-type]


@pytest.mark.parametrize("fail_each", [0, 3])
async def test_a_flood_arrives_at_the_server_byte_for_byte_while_it_runs(
    tmp_path: Path, fail_each: int
) -> None:
    server = Recorder(fail_each)
    limits, spool_limits = LogLimits(8 * MIB, MIB), SpoolLimits(MIB, 16 * MIB, 0)
    log = SpooledLog(
        tmp_path,
        server.send,
        clock=CLOCK,
        randomness=SeededRandomness(1),
        limits=limits,
        spool_limits=spool_limits,
    )
    shipping = asyncio.create_task(log.run())

    text = "import sys\nfor at in range(400_000): sys.stdout.write(f'line {at} of the flood\\n')"
    await run_python(tmp_path, text, log.writer)
    end, digest = await log.close()
    assert await log.drain(20)
    await shipping

    assert server.size == end
    assert server.hash.hexdigest() == digest
    assert sum(file.stat().st_size for file in (tmp_path / "log").iterdir()) <= MIB + 100_000


class Recorder:
    """Takes the stream as the control plane does; loses every n-th reply."""

    def __init__(self, fail_each: int) -> None:
        self.size = 0
        self.hash = hashlib.sha256()
        self._fail_each = fail_each
        self._requests = 0

    async def send(self, offset: int, frame: bytes) -> LogReply:
        data = zstandard.ZstdDecompressor().decompress(frame)
        self._requests += 1
        if offset != self.size:
            raise RemoteProblem(409, "log_offset", "wrong", facts={"next_offset": self.size})
        self.size += len(data)
        self.hash.update(data)
        if self._fail_each and self._requests % self._fail_each == 0:
            raise Unreachable("the reply was lost", retry_after_s=0.01)
        return LogReply(next_offset=self.size)
