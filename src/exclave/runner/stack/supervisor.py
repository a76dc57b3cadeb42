"""The supervisor: keeps the runner's process running, as an init system would."""

import asyncio
import fcntl
import os
import signal
from collections.abc import Sequence
from typing import ClassVar

from exclave.base.clock import Clock
from exclave.base.errors import Kind, Problem
from exclave.base.ids import Randomness, jitter
from exclave.base.logs import Log
from exclave.runner.stack.folder import StackFolder
from exclave.runner.stack.rotated_log import RotatedLog
from exclave.runner.wakeups import wait_first

_log = Log("runner.supervisor")

FINAL_EXIT = 10
"""The runner's exit code if a restart would not help."""
_STEADY_S = 60.0
_FIRST_S, _LONGEST_S = 0.5, 30.0
_STOP_WITHIN_S = 240.0
"""Mutating jobs may take three minutes to end gracefully."""
_CHUNK = 65_536
_LOCK_TRIES, _LOCK_PAUSE_S = 10, 0.05


class StackRunning(Problem):
    """The Stack has a supervisor already."""

    kind: ClassVar = Kind.CONFLICT
    code: ClassVar = "stack_running"
    hint: ClassVar = "Nothing is to be done; `stack status` shows it, `stack stop` ends it."


class Supervisor:
    """Restarts a child until a stop is requested, or it exits with `FINAL_EXIT`."""

    def __init__(
        self,
        folder: StackFolder,
        argv: Sequence[str],
        *,
        clock: Clock,
        randomness: Randomness,
        first_s: float = _FIRST_S,
    ) -> None:
        self._folder = folder
        self._argv = argv
        self._clock = clock
        self._randomness = randomness
        self._first_s = first_s
        self._stopping = asyncio.Event()

    def request_stop(self) -> None:
        """Stop the child gracefully, then return from `run`."""
        self._stopping.set()

    async def run(self) -> bool:
        """Supervise the child; return False if it exited with `FINAL_EXIT`."""
        lock = await acquire_lock(self._folder, self._clock)
        log = RotatedLog(self._folder.log)
        try:
            return await self._keep_alive(log)
        finally:
            log.close()
            os.close(lock)

    async def _keep_alive(self, log: RotatedLog) -> bool:
        attempt = 0
        while not self._stopping.is_set():
            began = self._clock.monotonic()
            code = await self._run_child(log)
            if self._stopping.is_set():
                return True
            if code == FINAL_EXIT:
                _log.error("runner_ended_for_good")
                return False
            attempt = 0 if self._clock.monotonic() - began > _STEADY_S else attempt + 1
            pause = jitter(self._randomness, attempt, first=self._first_s, longest=_LONGEST_S)
            _log.warning("runner_exited", code=code, restart_in_s=round(pause, 1))
            await wait_first(self._clock, pause, self._stopping.wait())
        return True

    async def _run_child(self, log: RotatedLog) -> int:
        """Run one child. Its standard input ends if the supervisor dies, which stops it too."""
        child = await asyncio.create_subprocess_exec(
            *self._argv,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
        pumping = asyncio.create_task(_pump(child.stdout, log))
        ending = asyncio.create_task(self._end_when_asked(child))
        try:
            code = await child.wait()
        finally:
            ending.cancel()
            if child.returncode is None:
                child.kill()
                await child.wait()
            await asyncio.wait([pumping], timeout=1.0)
            pumping.cancel()
        return code

    async def _end_when_asked(self, child: asyncio.subprocess.Process) -> None:
        await self._stopping.wait()
        child.send_signal(signal.SIGTERM)
        await self._clock.sleep(_STOP_WITHIN_S)
        child.kill()


async def _pump(output: asyncio.StreamReader | None, log: RotatedLog) -> None:
    while output is not None and (data := await output.read(_CHUNK)):
        log.write(data)


async def acquire_lock(folder: StackFolder, clock: Clock) -> int:
    """Acquire the lock of the Stack's supervisor; it is released with the process.

    `find_supervisor` holds the lock for a moment, hence the retries.
    """
    for _ in range(_LOCK_TRIES):
        handle = os.open(folder.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(handle)
            await clock.sleep(_LOCK_PAUSE_S)
        else:
            os.ftruncate(handle, 0)
            os.write(handle, str(os.getpid()).encode())
            return handle
    raise StackRunning(f"the Stack in `{folder.path}` is running already")


def find_supervisor(folder: StackFolder) -> int | None:
    """Return the pid of the process that supervises this Stack; None if there is none."""
    try:
        handle = os.open(folder.lock, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        content = os.pread(handle, 32, 0).decode(errors="replace")
        return int(content) if content.isdecimal() else 0
    else:
        return None
    finally:
        os.close(handle)
