"""From the enqueuing transaction to the runner that holds the job, with a thousand idle runners."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

from sqlalchemy import select

from exclave.storage.engine.dialects import choose_dialect
from exclave.storage.tables import work
from tests.bench.fleet import Task
from tests.bench.report import Measure, find_quantile, say
from tests.bench.seeding import seed_fleet
from tests.bench.servers import Server, raise_limits, run_server
from tests.support.postgres import start_postgres

RUNNERS = 1000
JOBS = 500
WARM_UP = 50
"""Jobs before those that count: the first of a server compile its statements."""
BASELINE_JOBS = 200
POLL_EVERY_S = 5.0
GOAL_P50 = 4.0
GOAL_P99 = 15.0


@dataclass(frozen=True, slots=True)
class Found:
    """Latencies in ms: from the enqueuing transaction, from the request, and by polling."""

    latency: list[float]
    whole: list[float]
    polled: list[float]
    server_cpu_ms: float
    """Per job, of all servers together."""
    fleet_cpu_ms: float


def measure_sqlite() -> Iterator[Measure]:
    """Measure one server on a SQLite file."""
    with tempfile.TemporaryDirectory() as folder:
        found = measure(Path(folder), f"sqlite:///{folder}/exclave.db", servers=1)
    yield _judge("dispatch_latency_sqlite", found)


def measure_postgres() -> Iterator[Measure]:
    """Measure one server on PostgreSQL."""
    yield _judge("dispatch_latency_postgres", _measure_on_postgres(1))


def measure_two_servers() -> Iterator[Measure]:
    """Measure two servers on one PostgreSQL, half of the runners and of the customers on each."""
    yield _judge("dispatch_latency_postgres_two_servers", _measure_on_postgres(2))


def _measure_on_postgres(servers: int) -> Found:
    with tempfile.TemporaryDirectory() as folder:
        database = start_postgres(Path(folder) / "postgres")
        try:
            return measure(Path(folder) / "data", database.create_database("bench"), servers)
        finally:
            database.stop()


def _judge(name: str, found: Found) -> Measure:
    p50, p99 = find_quantile(found.latency, 0.5), find_quantile(found.latency, 0.99)
    baseline = find_quantile(found.polled, 0.5)
    return Measure(
        name,
        p50,
        "ms",
        f"p50 <= {GOAL_P50:g} ms and p99 <= {GOAL_P99:g} ms",
        met=p50 <= GOAL_P50 and p99 <= GOAL_P99,
        baseline=baseline,
        ratio=baseline / p50,
        detail={
            "p50_ms": round(p50, 2),
            "p99_ms": round(p99, 2),
            "jobs": len(found.latency),
            "warm_up_jobs": WARM_UP,
            "runners": RUNNERS,
            "from_request_p50_ms": round(find_quantile(found.whole, 0.5), 2),
            "from_request_p99_ms": round(find_quantile(found.whole, 0.99), 2),
            "server_cpu_ms_per_job": round(found.server_cpu_ms, 2),
            "fleet_cpu_ms_per_job": round(found.fleet_cpu_ms, 2),
            "baseline_p99_ms": round(find_quantile(found.polled, 0.99), 2),
            "baseline_is": f"the same jobs, a poll every {POLL_EVERY_S:g} s",
        },
    )


def measure(data: Path, url: str, servers: int) -> Found:
    """Run jobs through held polls, then the same over slow polls."""
    seeded = seed_fleet(data, url, RUNNERS)
    raise_limits()
    with ExitStack() as stack:
        running = [stack.enter_context(run_server(data, url)) for _ in range(servers)]
        task = _make_task(running, seeded.api_token, seeded.queues, seeded.tokens)
        say(f"  {RUNNERS} runners hold a poll, {WARM_UP} + {JOBS} jobs at 50/s")
        record = run_fleet(Task(**asdict(task) | {"jobs": WARM_UP + JOBS}))
        say(f"  the same with a poll every {POLL_EVERY_S:g} s")
        slow = {"jobs": BASELINE_JOBS, "hold_s": 0.0, "pause_s": POLL_EVERY_S, "boot": 2}
        old = run_fleet(Task(**asdict(task) | slow))
        enqueued = _read_enqueued(url)
    counted = sorted(record["received"], key=lambda job: enqueued[job])[WARM_UP:]
    received = {job: record["received"][job] for job in counted}
    return Found(
        latency=_subtract(received, enqueued),
        whole=_subtract(received, record["sent"]),
        polled=_subtract(old["received"], enqueued),
        server_cpu_ms=record["cpu"]["servers"] / (WARM_UP + JOBS) * 1000,
        fleet_cpu_ms=record["cpu"]["fleet"] / (WARM_UP + JOBS) * 1000,
    )


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


def _make_task(
    running: Sequence[Server], api_token: str, queues: list[str], tokens: list[str]
) -> Task:
    return Task(
        [server.control_port for server in running],
        [server.runner_port for server in running],
        api_token,
        queues,
        tokens,
        server_pids=[server.pid for server in running],
    )


def _read_enqueued(url: str) -> dict[str, float]:
    """Read when each job was enqueued, by the clock of its transaction."""
    engine = choose_dialect(url).open_reader()
    with engine.connect() as connection:
        rows = connection.execute(select(work.jobs.c.id, work.jobs.c.created_at)).all()
    engine.dispose()
    return {row.id: row.created_at.timestamp() for row in rows}


def _subtract(late: dict[str, float], early: dict[str, float]) -> list[float]:
    return [(at - early[job]) * 1000 for job, at in late.items() if job in early]
