"""What an executor is given, how it is told to end, and what it must keep to."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from exclave.runner.control_plane.execution_api import Uplink
from exclave.runner.logs.spool import LogWriter
from exclave.runner.processes.cell import NO_CELL, Cell
from exclave.wire.jobs import OutcomeState, Reason
from exclave.wire.runner import Dispatch, Outcome

MESSAGE_CHARS = 4000
"""Most characters of an outcome's message."""


@dataclass(frozen=True, slots=True)
class Work:
    """One execution that may run now.

    `folder` is the execution's own: `log/` (the spool), `process.json` (what was started last),
    what else the runner keeps about it, and `job/`, all that its commands may touch.
    """

    dispatch: Dispatch
    folder: Path
    uplink: Uplink
    cell: Cell = NO_CELL


class Stop:
    """A lasting wish to end; the first reason wins. For use within the event loop only."""

    def __init__(self) -> None:
        self.reason: Reason | None = None
        self.grace_s = 0.0
        self._event = asyncio.Event()

    def request(self, reason: Reason, grace_s: float) -> None:
        """Ask for an end within `grace_s` seconds; later requests change nothing."""
        if self.reason is None:
            self.reason = reason
            self.grace_s = grace_s
            self._event.set()

    async def wait(self) -> None:
        """Return once an end is wished for."""
        await self._event.wait()


class Executor(Protocol):
    """Does one kind of job."""

    async def run(self, work: Work, log: LogWriter, stop: Stop) -> Outcome:
        """Do the work and tell how it ended.

        A failed tool is an outcome, never an exception. After a stop it returns within the
        grace and two seconds, with nothing of the work still running.
        """
        ...


class WorkFailed(Exception):  # noqa: N818 - says what happened, like `Problem`
    """The work cannot be done; the reason is one of the closed list, the message tells the fix."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message

    def outcome(self) -> Outcome:
        """Put it as the outcome of an execution."""
        return fail(self.reason, self.message)


def fail(reason: Reason, message: str, exit_code: int | None = None) -> Outcome:
    """Build the outcome of work that did not succeed."""
    return Outcome(
        state=OutcomeState.FAILED,
        reason=reason,
        message=message[:MESSAGE_CHARS],
        exit_code=exit_code,
    )


def end_by_stop(reason: Reason, message: str) -> Outcome:
    """Build the outcome of work that was told to end: what people want is final, all else not."""
    wanted = reason in {Reason.CANCELLED, Reason.DISABLED}
    state = OutcomeState.CANCELLED if wanted else OutcomeState.INTERRUPTED
    return Outcome(state=state, reason=reason, message=message[:MESSAGE_CHARS])
