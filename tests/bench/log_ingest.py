"""Log lines per second, durably stored: compressed pieces against a row per line."""

import asyncio
import json
import sqlite3
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import zstandard

from exclave.base.clock import SystemClock
from exclave.control.logs.logs import append_log
from exclave.domain.jobs import ExecutionId
from exclave.storage.blobs.files import FileBlobs
from exclave.wire.logs import Stream, write_record
from tests.bench.report import Measure, say
from tests.support.world import (
    FakeRunner,
    enrol_fake_runner,
    job,
    make_deps,
    make_install,
    make_org,
    run_workflow,
)

EXECUTIONS = 8
PIECES = 40
LINES = 2000
"""Lines of one piece; a runner sends up to a second's worth, or half a mebibyte."""
GOAL_RATIO = 2.0
TEXT = (
    "2026-01-01T00:00:00Z module.network.aws_subnet.private[{n}]: Still creating... [{n}s elapsed]"
)


def measure() -> Iterator[Measure]:
    """Store the same lines both ways, from as many executions at once."""
    with tempfile.TemporaryDirectory() as folder:
        pieces = asyncio.run(_store_pieces(Path(folder)))
        say("  baseline: one row per line")
        rows = _store_rows(Path(folder) / "rows.db")
    yield Measure(
        "log_ingest",
        pieces,
        "lines/s",
        f">= {GOAL_RATIO:g}x the baseline",
        met=pieces / rows >= GOAL_RATIO,
        baseline=rows,
        ratio=pieces / rows,
        detail={
            "executions": EXECUTIONS,
            "lines": EXECUTIONS * PIECES * LINES,
            "lines_per_piece": LINES,
            "bytes_per_line": len(_make_lines(0)) // LINES,
            "baseline_is": "one SQLite row per line, a commit per piece, synchronous=FULL",
        },
    )


async def _store_pieces(folder: Path) -> float:
    blobs = FileBlobs(folder / "blobs")
    url = f"sqlite:///{folder / 'exclave.db'}"
    deps = make_deps(SystemClock(), url=url, blobs=blobs, inline=False)
    try:
        user = await make_org(deps)
        queue = await make_install(deps, user)
        peer = await enrol_fake_runner(deps, user, queue)
        await run_workflow(deps, user, queue, *(job(f"j{n}") for n in range(EXECUTIONS)))
        offers = (await peer.poll(free=EXECUTIONS)).offers
        for offer in offers:
            await peer.start(offer.execution_id, offer.epoch)
        bodies = [zstandard.compress(_make_lines(number), 3) for number in range(PIECES)]
        begun = time.perf_counter()
        await asyncio.gather(*(_ship(peer, o.execution_id, o.epoch, bodies) for o in offers))
        return EXECUTIONS * PIECES * LINES / (time.perf_counter() - begun)
    finally:
        deps.db.close()
        await blobs.close()


async def _ship(peer: FakeRunner, execution: str, epoch: int, bodies: Sequence[bytes]) -> None:
    """Send pieces one after the other, as a runner does; compressing them is its own work."""
    offset = 0
    for body in bodies:
        reply = await append_log(peer.deps, peer.who, ExecutionId(execution), epoch, offset, body)
        offset = reply.next_offset


def _store_rows(file: Path) -> float:
    """Write the same lines as rows, parsed beforehand: one writer, a commit per piece."""
    pieces = [[json.loads(line) for line in _make_lines(n).splitlines()] for n in range(PIECES)]
    connection = sqlite3.connect(file, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute(
        "CREATE TABLE lines (execution TEXT, n INTEGER, t_ms INTEGER, stream INTEGER, text TEXT,"
        " PRIMARY KEY (execution, n)) WITHOUT ROWID"
    )
    begun = time.perf_counter()
    for piece in pieces:
        for execution in range(EXECUTIONS):
            rows = [(f"exe_{execution}", *row) for row in piece]
            connection.execute("BEGIN")
            connection.executemany("INSERT INTO lines VALUES (?, ?, ?, ?, ?)", rows)
            connection.execute("COMMIT")
    took = time.perf_counter() - begun
    connection.close()
    return EXECUTIONS * PIECES * LINES / took


def _make_lines(piece: int) -> bytes:
    first = piece * LINES
    return b"".join(
        write_record(n, n * 10, Stream.STDOUT, TEXT.format(n=n))
        for n in range(first, first + LINES)
    )
