"""Runs one command of an execution to its end: exit, timeout or stop."""

import asyncio
import signal
from dataclasses import dataclass
from enum import StrEnum

from exclave.base.clock import Clock
from exclave.runner.jobs.executor import JobRun, StopRequest
from exclave.runner.logs.spool import LogWriter
from exclave.runner.processes.child import Child, Command, end_child, start_child
from exclave.runner.wakeups import wait_first

_SIGNAL_BASE = 128


class Cause(StrEnum):
    """What ended a command."""

    EXIT = "exit"
    TIMEOUT = "timeout"
    STOP = "stop"


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended; `code` is None if it could not be killed."""

    cause: Cause
    code: int | None


class Shell:
    """Runs the commands of one execution, one after the other."""

    def __init__(
        self,
        job: JobRun,
        log: LogWriter,
        stop: StopRequest,
        clock: Clock,
        *,
        timeout_grace_s: float,
    ) -> None:
        self._job = job
        self._log = log
        self._stop = stop
        self._clock = clock
        self._timeout_grace_s = timeout_grace_s

    async def run(self, command: Command, timeout_s: float) -> Ended:
        """Run a command; when this returns, it and its descendants are gone.

        Raises `WorkFailed` if it cannot be started.
        """
        deadline = self._clock.monotonic() + timeout_s
        child = await start_child(
            command,
            folder=self._job.folder,
            execution_id=self._job.dispatch.execution_id,
            log=self._log,
            clock=self._clock,
            cell=self._job.cell,
        )
        try:
            cause = await self._await_end(child, deadline)
        except asyncio.CancelledError:
            await _close_surely(child)
            raise
        code = await _close_surely(child)
        self._log.end_streams()
        return Ended(cause, code)

    async def _await_end(self, child: Child, deadline: float) -> Cause:
        left_s = deadline - self._clock.monotonic()
        await wait_first(self._clock, left_s, child.wait_exit(), self._stop.wait())
        if child.has_exited and self._stop.reason is None:
            return Cause.EXIT
        if self._stop.reason is not None:
            self._log.system(f"stopping the command: {self._stop.reason}")
            await end_child(child, self._clock, self._stop.grace_s)
            return Cause.STOP
        self._log.system("stopping the command: timeout")
        await end_child(child, self._clock, self._timeout_grace_s, hurry=self._await_stop_grace())
        return Cause.STOP if self._stop.reason is not None else Cause.TIMEOUT

    async def _await_stop_grace(self) -> float:
        await self._stop.wait()
        return self._stop.grace_s


def name_signal(number: int) -> str:
    """Return the name of a signal, such as `SIGKILL`."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def to_exit_status(code: int) -> int:
    """Return an exit code as a shell reports it: 128 plus the number of a signal."""
    return code if code >= 0 else _SIGNAL_BASE - code


async def _close_surely(child: Child) -> int | None:
    """Close a child even if the current task is cancelled meanwhile."""
    closing = asyncio.ensure_future(child.close())
    try:
        return await asyncio.shield(closing)
    except asyncio.CancelledError:
        await closing
        raise
