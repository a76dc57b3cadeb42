"""An execution at work: its folder, log, wish to end and deadline, in one hand."""

from dataclasses import dataclass

from exclave.base.clock import Clock
from exclave.runner.jobs.executor import Stop, Work, WorkFailed, end_by_stop
from exclave.runner.jobs.shell import Cause, Shell
from exclave.runner.jobs.workspace import Workspace
from exclave.runner.logs.spool import LogWriter
from exclave.runner.processes.child import Command, wait_first
from exclave.wire.jobs import Reason
from exclave.wire.runner import Outcome

_GRACE_S = 10.0
_SIGNAL_BASE = 128


class Stopped(Exception):  # noqa: N818 - no failure: somebody wished it
    """The work was told to end."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.message)
        self.outcome = outcome


@dataclass(frozen=True, slots=True)
class Task:
    """What the steps of one execution share."""

    work: Work
    workspace: Workspace
    log: LogWriter
    stop: Stop
    clock: Clock
    deadline: float
    timeout_s: float

    def check(self) -> None:
        """Raise if the work is to end, or its time is over."""
        if self.stop.reason is not None:
            raise Stopped(end_by_stop(self.stop.reason, f"stopped: {self.stop.reason}"))
        if self.clock.monotonic() >= self.deadline:
            message = f"it took longer than {self.timeout_s:g} s"
            raise WorkFailed(Reason.TIMEOUT, message)

    async def run(self, command: Command, log: LogWriter | None = None) -> int:
        """Run a command to its own end and answer its exit code."""
        self.check()
        shell = Shell(self.work, log or self.log, self.stop, self.clock, timeout_grace_s=_GRACE_S)
        ended = await shell.run(command, self.deadline - self.clock.monotonic())
        if ended.code is None:
            message = f"`{command.argv[0]}` does not die: look at the runner's machine"
            raise Stopped(end_by_stop(Reason.RUNNER_ERROR, message))
        if ended.cause is not Cause.EXIT:
            self.check()
            raise WorkFailed(Reason.TIMEOUT, f"it took longer than {self.timeout_s:g} s")
        return ended.code if ended.code >= 0 else _SIGNAL_BASE - ended.code

    async def pause(self, seconds: float) -> None:
        """Wait a little, but not beyond a wish to end."""
        left_s = self.deadline - self.clock.monotonic()
        await wait_first(self.clock, min(seconds, max(0.0, left_s)), self.stop.wait())
        self.check()
