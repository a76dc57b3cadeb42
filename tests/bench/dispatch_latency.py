"""From the enqueuing transaction to the runner that holds the job, with a thousand idle runners."""

import json
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

from sqlalchemy import select

from exclave.storage import tables
from exclave.storage.dialects import choose_dialect
from tests.bench.fleet import Task
from tests.bench.report import find_quantile, say
from tests.bench.seeding import seed_fleet
from tests.bench.servers import Server, raise_limits, run_server

RUNNERS = 1000
JOBS = 500
BASELINE_JOBS = 200
POLL_EVERY_S = 5.0


def measure(data: Path, url: str, servers: int) -> tuple[list[float], list[float], list[float]]:
    """Tell the latencies in ms: from the enqueuing transaction, from the request, and by polling."""
    seeded = seed_fleet(data, url, RUNNERS)
    raise_limits()
    with ExitStack() as stack:
        running = [stack.enter_context(run_server(data, url)) for _ in range(servers)]
        task = _make_task(running, seeded.api_token, seeded.queues, seeded.tokens)
        say(f"  {RUNNERS} runners hold a poll, {JOBS} jobs at 50/s")
        record = run_fleet(Task(**asdict(task) | {"jobs": JOBS}))
        say(f"  the same with a poll every {POLL_EVERY_S:g} s")
        slow = {"jobs": BASELINE_JOBS, "hold_s": 0.0, "pause_s": POLL_EVERY_S, "boot": 2}
        old = run_fleet(Task(**asdict(task) | slow))
        enqueued = _read_enqueued(url)
    whole = _subtract(record["received"], record["sent"])
    return (
        _subtract(record["received"], enqueued), whole, _subtract(old["received"], enqueued)
    )  # fmt: skip


def run_fleet(task: Task) -> dict[str, dict[str, float]]:
    """Run the load generator in a process of its own until it has its record."""
    argv = [sys.executable, "-m", "tests.bench.fleet"]
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    out, _ = process.communicate(json.dumps(asdict(task)) + "\n")
    if process.returncode:
        raise RuntimeError("the load generator failed")
    record: dict[str, dict[str, float]] = json.loads(out.splitlines()[-1])
    missing = len(record["sent"]) - len(record["received"])
    if missing:
        say(f"  {missing} jobs were not received in time")
    return record


def _make_task(running: Sequence[Server], api_token: str, queues: list[str], tokens: list[str]) -> Task:
    return Task(
        [server.control_port for server in running], [server.runner_port for server in running],
        api_token, queues, tokens,
    )  # fmt: skip


def _read_enqueued(url: str) -> dict[str, float]:
    """Read when each job was enqueued, by the clock of its transaction."""
    engine = choose_dialect(url).open_reader()
    with engine.connect() as connection:
        rows = connection.execute(select(tables.jobs.c.id, tables.jobs.c.created_at)).all()
    engine.dispose()
    return {row.id: row.created_at.timestamp() for row in rows}


def _subtract(late: dict[str, float], early: dict[str, float]) -> list[float]:
    return [(at - early[job]) * 1000 for job, at in late.items() if job in early]


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        found = measure(Path(folder), f"sqlite:///{folder}/exclave.db", 1)
        for values in found:
            say(f"{len(values)} p50 {find_quantile(values, 0.5):.2f} p99 {find_quantile(values, 0.99):.2f}")
