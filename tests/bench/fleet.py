"""The load generator: a process with many runners that poll, and a customer who starts workflows.

Reads its task from stdin as JSON; writes `ready` once all polls are open, and its record at the end.
"""

import asyncio
import base64
import contextlib
import json
import random
import sys
import time
from dataclasses import dataclass, field
from typing import Any

import uvloop
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from exclave.wire.envelope import encode_bytes
from exclave.wire.runner import PROTOCOL, token_message
from tests.bench.http1 import Connection
from tests.bench.seeding import Identity
from tests.bench.servers import read_cpu

OPENING_AT_ONCE = 64
CALLERS = 8
LATEST_S = 10.0
SETTLE_S_EACH = 0.008
"""Time for the server to take the first poll of each runner: the runners are to be idle."""


@dataclass(frozen=True, slots=True)
class Task:
    """What to do, and where."""

    control_ports: list[int]
    runner_ports: list[int]
    api_token: str
    queues: list[str]
    tokens: list[str]
    jobs: int = 0
    per_second: float = 50.0
    hold_s: float = 30.0
    pause_s: float = 0.0
    """Between polls: a long poll needs none, the old way is 5 s of it."""
    boot: int = 1
    server_pids: list[int] = field(default_factory=list)
    """The processes whose CPU time is counted while jobs run."""
    identities: list[dict[str, Any]] = field(default_factory=list)
    """Of a fleet of some age: its polls end evenly spread, each after the access token."""


@dataclass(slots=True)
class Record:
    """When each job was sent by the customer and received by its runner (seconds since 1970)."""

    sent: dict[str, float] = field(default_factory=dict)
    received: dict[str, float] = field(default_factory=dict)
    server_cpu_s: float = 0.0
    own_cpu_s: float = 0.0
    complete: asyncio.Event = field(default_factory=asyncio.Event)


class Runner:
    """Polls, takes what it is offered, says that it did it, polls again."""

    def __init__(self, task: Task, number: int, record: Record) -> None:
        self._task = task
        self._token = task.tokens[number]
        self._identity = Identity(**task.identities[number]) if task.identities else None
        self._port = task.runner_ports[number % len(task.runner_ports)]
        self._record = record
        self._no = 0
        self._boot = task.boot
        self._hold_s = random.uniform(0, task.hold_s) if task.identities else task.hold_s
        self.opened = asyncio.Event()

    async def run(self, line: asyncio.Semaphore) -> None:
        async with line:
            await asyncio.sleep(random.random() * self._task.pause_s)
            connection = await Connection.open(self._port, self._token)
            asking = asyncio.ensure_future(connection.post("/v1/poll", self._ask()))
            await asyncio.sleep(0.02)
            self.opened.set()
        while True:
            reply = await asking
            at = time.time()
            for offer in reply["offers"]:
                self._record.received[_find_job(offer["envelope"])] = at
                if len(self._record.received) >= self._task.jobs:
                    self._record.complete.set()
                await self._work(connection, offer)
            await asyncio.sleep(self._task.pause_s)
            self._hold_s = self._task.hold_s
            if self._identity is not None:
                connection.show(await self._replace_token(self._identity))
            asking = asyncio.ensure_future(connection.post("/v1/poll", self._ask()))

    def _ask(self) -> dict[str, Any]:
        self._no += 1
        return {
            "boot": self._boot,
            "no": self._no,
            "nonce": f"nonce-{self._no:020d}",
            "free": 4,
            "executions": [],
            "max_hold_s": self._hold_s,
            "version": "bench",
            "protocol": PROTOCOL,
            "capabilities": ["noop"],
            "stats": {"load": 0.5},
        }

    async def _replace_token(self, me: Identity) -> str:
        """Ask for an access token as runners do, on a connection that lasts no longer than that."""
        message = token_message(me.runner, me.nonce, me.generation)
        key = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(me.key))
        connection = await Connection.open(self._port, self._token)
        reply = await connection.post(
            "/v1/token",
            {
                "runner_id": me.runner,
                "nonce": me.nonce,
                "generation": me.generation,
                "signature": encode_bytes(key.sign(message)),
            },
        )
        connection.close()
        self._identity = Identity(me.runner, me.key, reply["next_nonce"], reply["generation"])
        return str(reply["access_token"])

    async def _work(self, connection: Connection, offer: dict[str, Any]) -> None:
        path = f"/v1/executions/{offer['execution_id']}"
        self._no += 1
        start = {"boot": self._boot, "no": self._no, "epoch": offer["epoch"]}
        await connection.post(f"{path}/start", start)
        outcome = {"state": "succeeded", "reason": "completed"}
        await connection.post(f"{path}/result", {"epoch": offer["epoch"], "outcome": outcome})


async def start_workflows(task: Task, record: Record) -> None:
    """Start workflows of one job each, evenly spaced, each for another runner."""
    ports = [task.control_ports[n % len(task.control_ports)] for n in range(CALLERS)]
    free: asyncio.Queue[Connection] = asyncio.Queue()
    for port in ports:
        free.put_nowait(await Connection.open(port, task.api_token))
    targets = random.sample(task.queues, len(task.queues))
    calls = []
    begun = time.monotonic()
    for number in range(task.jobs):
        await asyncio.sleep(max(0.0, begun + number / task.per_second - time.monotonic()))
        queue = targets[number % len(targets)]
        calls.append(asyncio.create_task(_start_one(free, queue, record)))
    await asyncio.gather(*calls)


async def _start_one(free: "asyncio.Queue[Connection]", queue: str, record: Record) -> None:
    connection = await free.get()
    step = {"name": "work", "kind": "job", "job": {"kind": "noop"}}
    at = time.time()
    reply = await connection.post(
        "/v1/workflows", {"name": "bench", "queue_id": queue, "steps": [step]}
    )
    record.sent[reply["steps"][0]["job_id"]] = at
    free.put_nowait(connection)


def _read_cpu(task: Task) -> float:
    return sum(read_cpu(pid) for pid in task.server_pids)


def _find_job(envelope: str) -> str:
    payload = envelope.split(".")[1]
    dispatch = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    return str(dispatch["job_id"])


async def main(task: Task) -> None:
    """Hold polls until stdin closes, or until all jobs came through."""
    record = Record()
    line = asyncio.Semaphore(OPENING_AT_ONCE if not task.pause_s else len(task.tokens))
    runners = [Runner(task, number, record) for number in range(len(task.tokens))]
    polling = [asyncio.ensure_future(runner.run(line)) for runner in runners]
    failed = asyncio.gather(*polling)
    opened: asyncio.Future[list[bool]] = asyncio.gather(*(r.opened.wait() for r in runners))
    failed.add_done_callback(lambda _: opened.cancel())
    try:
        await opened
    except asyncio.CancelledError:
        await failed
    print("ready", flush=True)
    if task.jobs:
        await asyncio.sleep(SETTLE_S_EACH * len(runners))
        server, own = _read_cpu(task), time.process_time()
        await start_workflows(task, record)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(record.complete.wait(), LATEST_S)
        record.server_cpu_s = _read_cpu(task) - server
        record.own_cpu_s = time.process_time() - own
    else:
        await asyncio.to_thread(sys.stdin.readline)
    print(
        json.dumps(
            {
                "sent": record.sent,
                "received": record.received,
                "cpu": {"servers": record.server_cpu_s, "fleet": record.own_cpu_s},
            }
        ),
        flush=True,
    )
    failed.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await failed


if __name__ == "__main__":
    uvloop.run(main(Task(**json.loads(sys.stdin.readline()))))
