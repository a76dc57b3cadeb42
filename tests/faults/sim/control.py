"""The real control plane in memory: servers that come and go on one database."""

import asyncio
import functools
import sqlite3
import tempfile
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from random import Random
from typing import Any, cast

from exclave.base.errors import Kind, Problem
from exclave.base.ids import Ids, SeededRandomness
from exclave.client.problems import RemoteProblem
from exclave.control.after_restore import settle_restore
from exclave.control.background.tasks import list_chores
from exclave.control.chores import run_chore
from exclave.control.deps import Deps, ServerDeps
from exclave.control.keyring import Keyring
from exclave.control.runtime.parked_polls import ParkedPolls
from exclave.control.runtime.sync_folders import SyncFolders
from exclave.control.vault import Vault
from exclave.domain.timings import Timings, check_timings
from exclave.storage import keys as stored_keys
from exclave.storage.blobs.memory import MemoryBlobs
from exclave.storage.engine.database import Database, Tx
from exclave.storage.engine.dialects import SqliteDialect
from exclave.storage.engine.hub import Hub
from tests.faults.sim.ledger import Cloud, Ledger
from tests.faults.sim.watching import Watcher
from tests.support.virtual_time import VirtualClock
from tests.support.world import SEAL, ManualClock, migrate

Handle = Callable[[Deps], Awaitable[Any]]

TIMINGS = check_timings(
    Timings(renew_s=20.0, late_after_s=40.0, lost_after_s=60.0, poll_hold_s=150.0)
)
"""The real durations, but for idle chatter, which would only cost time."""
IDLE_RENEW_S = 120.0
SWEEP_S = 30.0
"""Sweeps are a third of the cost of a run; nothing waits less than a minute for one."""
_CHORES = {"lost", "timers", "unmoved", "log_merge"}
"""The chores that matter for what a simulation promises."""

_STATUS = {
    Kind.INVALID: 422,
    Kind.UNAUTHENTICATED: 401,
    Kind.FORBIDDEN: 403,
    Kind.NOT_FOUND: 404,
    Kind.CONFLICT: 409,
    Kind.GONE: 410,
    Kind.TOO_LARGE: 413,
    Kind.TOO_MANY: 429,
    Kind.FULL: 507,
    Kind.UNAVAILABLE: 503,
}


class QuietPolls(ParkedPolls):
    """Lets idle runners sleep longer."""

    def renew_s(self, timings: Timings, *, busy: bool) -> float:
        return timings.renew_s if busy else IDLE_RENEW_S


class SlowBlobs(MemoryBlobs):
    """A store that takes its time, so that servers die between a blob and its index entry."""

    def __init__(self, random: Random) -> None:
        super().__init__()
        self._random = random

    async def put(self, key: str, data: bytes) -> None:
        await asyncio.sleep(self._random.uniform(0.0, 0.2))
        await super().put(key, data)


class SimControl:
    """A control plane whose server processes die and come back; its database stays."""

    def __init__(self, seed: int, ledger: Ledger, cloud: Cloud, timings: Timings = TIMINGS) -> None:
        self._ledger = ledger
        self._clock = VirtualClock()
        self._ids = Ids(self._clock, SeededRandomness(seed))
        self._timings = timings
        dialect = SqliteDialect("sqlite:///:memory:")
        self.db = Database(dialect, self._clock, Hub(), name="sim", inline=True)
        engine = dialect.open_writer()
        raw = engine.raw_connection().driver_connection
        assert isinstance(raw, sqlite3.Connection)
        raw.deserialize(_make_template())
        Watcher(ledger, cloud).attach(engine, raw)
        self.blobs = SlowBlobs(Random(seed))
        self.deps: ServerDeps | None = None
        self.restored_at = float("-inf")
        """When the epochs of all that ran were last declared void."""
        self._tasks: dict[asyncio.Task[Any], None] = {}

    def start(self) -> None:
        """Start a server process: nothing in its memory, everything in its database."""
        if self.deps is not None:
            return
        hub = Hub()
        self.db.hub = hub
        self.deps = ServerDeps(
            db=self.db,
            blobs=self.blobs,
            hub=hub,
            clock=self._clock,
            ids=self._ids,
            keys=Keyring(SEAL, self._ids, self._clock),
            vault=Vault(SEAL),
            sync_folders=SyncFolders(Path(tempfile.gettempdir())),
            timings=self._timings,
            parked_polls=QuietPolls(),
        )
        self.db.write_now(self.deps.keys.ensure_key)
        for chore in list_chores(self.deps):
            if chore.name in _CHORES:
                self._spawn(run_chore(self.deps, chore))
        self._ledger.trace("server up")

    def rotate_key(self) -> None:
        """Sign with a new key from now on."""
        if self.deps is not None:
            self.db.write_now(self.deps.keys.rotate)

    def restore(self) -> None:
        """Come back as from a backup that is a moment old: a new generation of epochs."""
        self.kill()
        self.start()
        deps = self.deps
        assert deps is not None
        self.db.write_now(lambda tx: settle_restore(tx, deps))
        self.restored_at = asyncio.get_running_loop().time()

    def kill(self) -> None:
        """Kill the server process: requests under way and background tasks die with it."""
        self.deps = None
        for task in list(self._tasks):
            task.cancel()
        self._ledger.trace("server down")

    async def serve(self, op: str, handle: Handle) -> object | Problem | None:
        """Answer a request as HTTP would; None where no server is there to answer."""
        if self.deps is None:
            return None
        task = self._spawn(handle(self.deps))  # type: ignore[arg-type]
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            task.cancel()
            raise
        if task.cancelled():
            return None
        error = task.exception()
        if isinstance(error, Problem):
            return put_problem(error)
        if error is not None:
            self._ledger.report("BUG", op, type(error).__name__, error)
            return RemoteProblem(500, "internal", "the server failed")
        return cast("object", task.result())

    def read(self, query: Callable[[Tx], Any]) -> Any:
        """Look into the database."""
        return self.db._read(query)

    def close(self) -> None:
        """Let go of the database."""
        self.db.close()

    def _spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[task] = None
        task.add_done_callback(lambda done: self._tasks.pop(done, None))
        return task


def put_problem(problem: Problem) -> RemoteProblem:
    """Put a problem of the control plane as its client will see it."""
    return RemoteProblem(
        _STATUS[problem.kind],
        problem.code,
        problem.message,
        hint=problem.advice,
        facts=problem.facts,
    )


@functools.cache
def _make_template() -> bytes:
    """Migrate once; every simulated database begins as a copy."""
    dialect = SqliteDialect("sqlite:///:memory:")
    db = Database(dialect, ManualClock(), Hub(), name="template", inline=True)

    def set_up(tx: Tx) -> None:
        migrate(tx.connection)
        stored_keys.add_cluster(tx, "sim")

    db.write_now(set_up)
    raw = dialect.open_writer().raw_connection().driver_connection
    assert isinstance(raw, sqlite3.Connection)
    template = raw.serialize()
    db.close()
    return template
