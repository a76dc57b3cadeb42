"""A pool of worker processes for work whose cost a tenant controls.

Why this exists: the server runs both APIs, all transactions and its chores on one event loop, so
a template or an app directory that computes for a second holds up every tenant for a second.
Threads do not help: Python runs one of them at a time, and none can be killed. A process can be,
and its CPU time and memory can be limited. See ADR 0022.

A call is a module-level function and arguments that pickle. Orgs take turns; one org never occupies
all workers, and neither do calls that may take long, of which an org has one at a time.
"""

import asyncio
import contextlib
import os
import pickle
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, TypeVarTuple

from exclave.base.errors import Problem, TooLarge, Unavailable
from exclave.control.runtime.request_slots import step_aside
from exclave.control.workers.process import CALL, MOST_REPLY, PATIENCE, REPLY, Ending
from exclave.control.workers.turns import TurnQueue, refuse_stopping

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

SIZE = 2
MEMORY_MB = 512
WAITING = 32
"""Calls of one org that may wait; more are refused with `busy`."""
LONG_S = 5.0
"""Calls that may take longer than this never occupy all workers."""
_KEPT = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "PYTHONPATH", "PYTHONHOME")
"""Environment variables that a worker inherits; the others may be secret."""
_WARM = (
    "exclave.appconfig.read_app",
    "exclave.control.workers.read_app",
    "exclave.control.workers.render_texts",
    "exclave.template.evaluator",
)
"""Modules that a worker imports before its first call."""
_START_S = 60.0
_NICENESS = 10
_END_S = 1.0
_BUFFER = 1024 * 1024


class TookTooLong(Problem):
    """The work exceeded its time limit, and would do so again."""

    code = "took_too_long"
    hint = "Make it smaller: shorter templates, fewer files, less nesting."


class TookTooMuch(TooLarge):
    """The work exceeded its memory limit."""

    code = "took_too_much_memory"
    hint = "Make it smaller; the operator of the control plane sets EXCLAVE_WORKER_MEMORY_MB."


class WorkerDied(Unavailable):
    """A worker ended in the middle of a call."""

    code = "worker_died"
    hint = "Try again; if it stays, make the request smaller."


class Workers(Protocol):
    """Runs expensive functions outside of the event loop."""

    tally: "Tally"

    async def run(self, org: str, function: Callable[[*Ts], T], *args: *Ts, seconds: float) -> T:
        """Run a module-level function for an org; its exceptions are raised here."""

    async def close(self) -> None:
        """End all workers; calls that run or wait fail."""


@dataclass(slots=True)
class Tally:
    """Counters of the workers, for metrics."""

    waiting: int = 0
    running: int = 0
    calls: int = 0
    kills: int = 0
    seconds: float = 0.0


class InlineWorkers:
    """Runs each function directly in the caller: for simulations and unit tests."""

    def __init__(self) -> None:
        self.tally = Tally()

    async def run(self, org: str, function: Callable[[*Ts], T], *args: *Ts, seconds: float) -> T:
        """Run the function."""
        del org, seconds
        self.tally.calls += 1
        return function(*args)

    async def close(self) -> None:
        """Do nothing."""


class WorkerProcesses:
    """A fixed number of processes, started when first needed and then kept."""

    def __init__(
        self, size: int = SIZE, *, memory_mb: int = MEMORY_MB, waiting: int = WAITING
    ) -> None:
        self.tally = Tally()
        self._memory_mb = memory_mb
        self._queue = TurnQueue(size, waiting)
        self._idle: list[_Worker] = []
        self._calls: set[asyncio.Task[Any]] = set()
        self._closed = False

    async def run(self, org: str, function: Callable[[*Ts], T], *args: *Ts, seconds: float) -> T:
        """Run a module-level function in a worker, when it is the org's turn.

        `seconds` limits the CPU time; the call may last four times as long. When the caller is
        cancelled, the worker is killed, because nothing else stops what it runs.
        """
        if self._closed:
            raise refuse_stopping()
        call = pickle.dumps(
            (function.__module__, function.__qualname__, args, seconds), pickle.HIGHEST_PROTOCOL
        )
        turn = self._queue.enter(org, long=seconds > LONG_S)
        self.tally.waiting += 1
        async with step_aside():
            try:
                try:
                    await turn.given
                finally:
                    self.tally.waiting -= 1
                return await self._call(call, seconds)  # type: ignore[no-any-return]
            finally:
                self._queue.leave(turn)

    async def close(self) -> None:
        """End all workers; calls that run or wait fail."""
        self._closed = True
        self._queue.refuse_all()
        calls = list(self._calls)
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        for worker in self._idle:
            await worker.end()
        self._idle.clear()

    async def _call(self, call: bytes, seconds: float) -> Any:
        loop = asyncio.get_running_loop()
        started = loop.time()
        self.tally.running += 1
        self.tally.calls += 1
        work = asyncio.ensure_future(self._use_worker(call, seconds))
        self._calls.add(work)
        try:
            return await work
        except asyncio.CancelledError:
            if self._closed:
                raise refuse_stopping() from None
            raise
        finally:
            self._calls.discard(work)
            self.tally.running -= 1
            self.tally.seconds += loop.time() - started

    async def _use_worker(self, call: bytes, seconds: float) -> Any:
        worker = await self._find_worker()
        try:
            ending, stays, reply = await worker.ask(call, seconds)
        except BaseException as error:
            self.tally.kills += 1
            await worker.end()
            if isinstance(error, TimeoutError) or worker.process.returncode == -signal.SIGPROF:
                raise TookTooLong(f"the work took longer than {seconds:g} s") from None
            if isinstance(error, OSError | EOFError):
                raise WorkerDied("a worker ended in the middle of its work") from error
            raise
        if stays and not self._closed:
            self._idle.append(worker)
        else:
            await worker.end()
        return _open_reply(ending, reply)

    async def _find_worker(self) -> "_Worker":
        while self._idle:
            worker = self._idle.pop()
            if worker.process.returncode is None:
                return worker
        try:
            return await _Worker.start(self._memory_mb)
        except (OSError, EOFError) as error:
            raise Unavailable("no worker can be started") from error


@dataclass(slots=True)
class _Worker:
    """The handle of a worker process."""

    process: asyncio.subprocess.Process

    @classmethod
    async def start(cls, memory_mb: int) -> "_Worker":
        """Start a process that inherits no descriptor but its pipes and standard error."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            "-m",
            "exclave.control.workers.process",
            str(os.getpid()),
            str(memory_mb),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=_BUFFER,
            env={name: os.environ[name] for name in _KEPT if name in os.environ},
        )
        with contextlib.suppress(ProcessLookupError, PermissionError):
            # Where CPU time is short, the server's own loop goes first, from the worker's start on.
            os.setpriority(os.PRIO_PROCESS, process.pid, os.nice(0) + _NICENESS)
        worker = cls(process)
        try:
            await worker.ask(pickle.dumps((sys.path, _WARM)), _START_S)
        except BaseException:
            await worker.end()
            raise
        return worker

    async def ask(self, call: bytes, seconds: float) -> tuple[Ending, bool, bytes]:
        """Run a call; return how it ended, whether the worker stays, and the reply."""
        assert self.process.stdout is not None  # noqa: S101 - `start` makes it a pipe
        async with asyncio.timeout(seconds * PATIENCE):
            self._send(call)
            head = await self.process.stdout.readexactly(REPLY.size)
            ending, leaves, size = REPLY.unpack(head)
            return Ending(ending), not leaves, await self.process.stdout.readexactly(size)

    async def end(self) -> None:
        """Kill the process and wait for its exit."""
        if self.process.stdout is not None and self.process.stdout.at_eof():
            # It is ending already. Killed now, asyncio would lose the signal that ended it.
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(self.process.wait()), _END_S)
        if self.process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        await asyncio.shield(self.process.wait())

    def _send(self, message: bytes) -> None:
        assert self.process.stdin is not None  # noqa: S101 - as above
        self.process.stdin.write(CALL.pack(len(message)))
        self.process.stdin.write(message)


def _open_reply(ending: Ending, reply: bytes) -> Any:
    match ending:
        case Ending.RETURNED:
            return pickle.loads(reply)  # noqa: S301 - of our own process
        case Ending.RAISED:
            raise pickle.loads(reply)  # noqa: S301 - as above
        case Ending.BROKEN:
            raise RuntimeError(reply.decode(errors="replace"))
        case Ending.TOO_MUCH_MEMORY:
            raise TookTooMuch("the work needs more memory than a worker has")
        case Ending.TOO_LARGE:
            raise TookTooMuch(f"the result is larger than {MOST_REPLY} bytes")
