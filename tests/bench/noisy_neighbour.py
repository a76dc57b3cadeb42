"""How a well-behaved org fares while another org and its runners do all they can to hurt it."""

import asyncio
import base64
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import uvloop

from exclave.control.orgs.accounts import create_org
from exclave.main.composition import build_deps
from exclave.main.settings import ServerSettings
from exclave.wire.runner import PROTOCOL
from tests.bench.http1 import Connection
from tests.bench.report import Measure, find_quantile, say
from tests.bench.seeding import Seeded, seed_fleet
from tests.bench.servers import Server, run_server
from tests.support.postgres import start_postgres

QUIET_S = 30.0
NOISY_S = 60.0
"""Long enough that the p99 of every kind of request is not decided by a handful of samples."""
WARM_UP_S = 3.0
EVERY_S = 0.025
RENEW_EVERY_S = 0.025
GOAL_RATIO = 3.0
GOAL_LATE_S = 2.0
GOAL_GROWTH = 300 << 20
_ASKED = "asked"
"""A job that the server has not named yet."""
KINDS = ("whoami", "dispatch", "start", "renew", "result")


@dataclass
class Probe:
    """The innocent org: an admin who asks and starts jobs, and a runner that works them off."""

    server: Server
    seeded: Seeded
    latencies: dict[str, list[float]] = field(default_factory=dict)
    sent: dict[str, float] = field(default_factory=dict)
    lost: int = 0
    no: int = 0

    async def run(self, seconds: float, first: int) -> dict[str, list[float]]:
        """Work for so long with two runners, from the first on; return latencies in ms by kind."""
        await self._work_for(WARM_UP_S, first)
        self.latencies = {kind: [] for kind in KINDS}
        await self._work_for(seconds, first + 2)
        return self.latencies

    async def _work_for(self, seconds: float, first: int) -> None:
        self.latencies = {kind: [] for kind in KINDS}
        roles = (
            self._ask(),
            self._start_jobs(first),
            self._work(first),
            self._renew(first + 1),
        )
        tasks = [asyncio.create_task(role) for role in roles]
        await asyncio.wait(tasks, timeout=seconds, return_when="FIRST_EXCEPTION")
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task
        ended = time.perf_counter()
        self.latencies["dispatch"] += [(ended - sent) * 1000 for sent in self.sent.values()]
        self.sent.clear()

    async def _ask(self) -> None:
        connection = await Connection.open(self.server.control_port, self.seeded.api_token)
        while True:
            with self._time("whoami"):
                await connection.get("/v1/whoami")
            await asyncio.sleep(EVERY_S)

    async def _start_jobs(self, number: int) -> None:
        connection = await Connection.open(self.server.control_port, self.seeded.api_token)
        step = {"name": "work", "kind": "job", "job": {"kind": "noop"}}
        body = {"name": "bench", "queue_id": self.seeded.queues[number], "steps": [step]}
        while True:
            self.sent[_ASKED] = time.perf_counter()
            reply = await connection.post("/v1/workflows", body)
            self.sent[reply["steps"][0]["job_id"]] = self.sent.pop(_ASKED)
            await asyncio.sleep(EVERY_S)

    async def _work(self, number: int) -> None:
        """Hold a poll; start and finish every offer at once."""
        connection = await Connection.open(self.server.runner_port, self.seeded.tokens[number])
        while True:
            reply = await connection.post("/v1/poll", self._poll())
            received = time.perf_counter()
            for offer in reply["offers"]:
                await self._finish(connection, offer, received)

    async def _finish(self, connection: Connection, offer: dict[str, str], received: float) -> None:
        path = f"/v1/executions/{offer['execution_id']}"
        with self._time("start"):
            await connection.post(f"{path}/start", self._number(epoch=offer["epoch"]))
        outcome = {"state": "succeeded", "reason": "completed"}
        with self._time("result"):
            await connection.post(f"{path}/result", {"epoch": offer["epoch"], "outcome": outcome})
        # By now the request that made the job was answered, or it is about to be.
        sent = self.sent.pop(_find_job(offer), None)
        if sent is not None:
            self.latencies["dispatch"].append((received - sent) * 1000)

    async def _renew(self, number: int) -> None:
        """Keep one execution alive, as a runner does whose job takes long."""
        control = await Connection.open(self.server.control_port, self.seeded.api_token)
        runner = await Connection.open(self.server.runner_port, self.seeded.tokens[number])
        step = {"name": "work", "kind": "job", "job": {"kind": "noop"}}
        body = {"name": "long", "queue_id": self.seeded.queues[number], "steps": [step]}
        await control.post("/v1/workflows", body)
        offers: list[dict[str, str]] = []
        while not offers:
            offers = (await runner.post("/v1/poll", self._poll()))["offers"]
        (offer,) = offers
        path = f"/v1/executions/{offer['execution_id']}"
        await runner.post(f"{path}/start", self._number(epoch=offer["epoch"]))
        held = [{"id": offer["execution_id"], "epoch": offer["epoch"]}]
        while True:
            with self._time("renew"):
                reply = await runner.post("/v1/renew", self._number(executions=held))
            self.lost += reply["verdicts"][offer["execution_id"]] != "ok"
            await asyncio.sleep(RENEW_EVERY_S)

    def _poll(self) -> dict[str, object]:
        return self._number(
            nonce=f"nonce-{self.no:020d}",
            free=4,
            executions=[],
            max_hold_s=30.0,
            version="bench",
            protocol=PROTOCOL,
            capabilities=["noop"],
        )

    def _number(self, **values: object) -> dict[str, object]:
        self.no += 1
        return {"boot": 1, "no": self.no, **values}

    @contextmanager
    def _time(self, kind: str) -> Iterator[None]:
        """Note how long a request took, or how long it had waited when time was up."""
        begun = time.perf_counter()
        try:
            yield
        finally:
            self.latencies[kind].append((time.perf_counter() - begun) * 1000)


@dataclass(frozen=True, slots=True)
class Found:
    """Both phases, and what the server needed."""

    quiet: dict[str, list[float]]
    noisy: dict[str, list[float]]
    lost: int
    quiet_memory: int
    peak_memory: int
    attacks: dict[str, int]


def measure_sqlite() -> Iterator[Measure]:
    """Measure one server on a SQLite file."""
    with tempfile.TemporaryDirectory() as folder:
        found = measure(Path(folder), f"sqlite:///{folder}/exclave.db")
    yield _make_measure("noisy_neighbour_sqlite", found)


def measure_postgres() -> Iterator[Measure]:
    """Measure one server on PostgreSQL."""
    with tempfile.TemporaryDirectory() as folder:
        database = start_postgres(Path(folder) / "postgres")
        try:
            found = measure(Path(folder) / "data", database.create_database("bench"))
        finally:
            database.stop()
    yield _make_measure("noisy_neighbour_postgres", found)


def measure(data: Path, url: str) -> Found:
    """Measure the innocent org alone, then beside the hostile one, on the same cores."""
    cores = os.sched_getaffinity(0)
    if len(cores) > 1:
        os.sched_setaffinity(0, cores - {max(cores)})  # the load generator has that one
    try:
        return _measure(data, url, cores)
    finally:
        os.sched_setaffinity(0, cores)


def _measure(data: Path, url: str, cores: set[int]) -> Found:
    seeded = seed_fleet(data, url, 2 * 4)
    hostile = _add_org(data, url)
    with run_server(data, url) as server:
        probe = Probe(server, seeded)
        say(f"  {QUIET_S:g} s alone")
        quiet = uvloop.run(probe.run(QUIET_S, 0))
        quiet_memory = server.read_memory()
        say(f"  {NOISY_S:g} s beside a hostile org")
        with _attack(server, hostile, cores) as attacks:
            noisy, peak = uvloop.run(_watch(probe, server))
    return Found(quiet, noisy, probe.lost, quiet_memory, peak, attacks)


async def _watch(probe: Probe, server: Server) -> tuple[dict[str, list[float]], int]:
    """Run the probe while the attacks go on; return its latencies and the most memory seen."""
    await asyncio.sleep(WARM_UP_S)  # until the attacks are in full swing
    work = asyncio.ensure_future(probe.run(NOISY_S, 4))
    peak = 0
    while not work.done():
        peak = max(peak, server.read_memory())
        await asyncio.wait([work], timeout=0.1)
    return await work, peak


@contextmanager
def _attack(server: Server, token: str, cores: set[int]) -> Iterator[dict[str, int]]:
    """Attack in a process of its own until the block ends; then fill in what was answered."""
    answers: dict[str, int] = {}
    urls = [f"http://127.0.0.1:{port}" for port in (server.control_port, server.runner_port)]
    argv = [sys.executable, "-m", "tests.bench.hostile_load"]
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    os.sched_setaffinity(process.pid, cores)
    if process.stdin is None:
        raise RuntimeError("the load generator has no stdin")
    try:
        process.stdin.write(json.dumps([*urls, token]) + "\n")
        process.stdin.flush()
        yield answers
        out, _ = process.communicate("\n", timeout=30)
        answers.update(json.loads(out))
    finally:
        process.kill()
        process.wait()


def _add_org(data: Path, url: str) -> str:
    deps = build_deps(ServerSettings(data=data, database=url))
    try:
        return deps.db.write_now(lambda tx: create_org(tx, deps, "hostile", "hostile")).token
    finally:
        deps.db.close()


def _make_measure(name: str, found: Found) -> Measure:
    unanswered = NOISY_S * 1000
    p99 = {
        kind: (
            find_quantile(found.quiet[kind], 0.99),
            find_quantile(found.noisy[kind] or [unanswered], 0.99),
        )
        for kind in KINDS
    }
    ratios = {kind: noisy / quiet for kind, (quiet, noisy) in p99.items()}
    worst = max(ratios, key=lambda kind: ratios[kind])
    late_s = max(found.noisy["renew"], default=unanswered) / 1000
    growth = found.peak_memory - found.quiet_memory
    return Measure(
        name,
        ratios[worst],
        "x",
        f"p99 <= {GOAL_RATIO:g}x the quiet p99, renewals <= {GOAL_LATE_S:g} s, nothing lost,"
        f" memory grows by <= {GOAL_GROWTH >> 20} MiB",
        met=ratios[worst] <= GOAL_RATIO
        and late_s <= GOAL_LATE_S
        and not found.lost
        and growth <= GOAL_GROWTH,
        baseline=p99[worst][0],
        ratio=1 / ratios[worst],
        detail={
            "worst": worst,
            "p99_ms": {kind: [round(one, 1) for one in both] for kind, both in p99.items()},
            "p50_ms": {
                kind: [
                    round(find_quantile(phase[kind] or [unanswered], 0.5), 1)
                    for phase in (found.quiet, found.noisy)
                ]
                for kind in KINDS
            },
            "counts": {kind: [len(found.quiet[kind]), len(found.noisy[kind])] for kind in KINDS},
            "slowest_renewal_ms": round(late_s * 1000),
            "lost": found.lost,
            "memory_mib": [found.quiet_memory >> 20, found.peak_memory >> 20],
            "attacks": found.attacks,
            "baseline_is": "the same requests with no other org",
        },
    )


def _find_job(offer: dict[str, str]) -> str:
    payload = offer["envelope"].split(".")[1]
    dispatch = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    return str(dispatch["job_id"])
