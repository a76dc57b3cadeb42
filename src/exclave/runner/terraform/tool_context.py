"""Where the commands of one Terraform job run, and how each of them may end."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from exclave.base.clock import Clock
from exclave.runner.jobs.executor import Stop, Work, end_by_stop, fail
from exclave.runner.jobs.shell import Cause, Ended, Shell
from exclave.runner.jobs.workspace import Workspace
from exclave.runner.logs.capture import CapturingLog
from exclave.runner.logs.spool import LogWriter
from exclave.runner.processes.child import Command, wait_first
from exclave.runner.terraform.plugin_cache import PluginCache
from exclave.runner.terraform.state_store import StateStore
from exclave.runner.terraform.unsent_state import MODULE
from exclave.wire.jobs import Reason
from exclave.wire.logs import Stream
from exclave.wire.runner import Outcome
from exclave.wire.specs import TerraformSpec

MOST_OUTPUT = 512 << 20
"""Most bytes of a plan in JSON."""


class Halted(Exception):  # noqa: N818 - says what happened, like `Problem`
    """A command was ended by a stop or a timeout; the outcome tells by which."""

    def __init__(self, outcome: Outcome, ended: Ended | None = None) -> None:
        super().__init__(outcome.message)
        self.outcome = outcome
        self.ended = ended


@dataclass(slots=True)
class Site:
    """What the commands of one execution share."""

    work: Work
    spec: TerraformSpec
    log: LogWriter
    stop: Stop
    clock: Clock
    workspace: Workspace
    store: StateStore
    deadline: float
    grace_s: float
    plugins: PluginCache
    """Its turn is taken for `init`: the shared folder of providers bears one at a time."""
    tool: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    hidden: frozenset[str] = frozenset()
    """Values that are never shown, even those too short to be looked for in a text."""

    @property
    def module(self) -> Path:
        """The module's folder."""
        return self.work.folder / MODULE

    @property
    def plan_file(self) -> Path:
        """The plan, in clear; it leaves the machine only sealed."""
        return self.workspace.folder / "plan.bin"

    def mask(self, text: str) -> str:
        """Mask a text that leaves the runner."""
        return "***" if text in self.hidden else self.log.mask(text)

    async def run(
        self,
        name: str,
        argv: tuple[str, ...],
        *,
        log: LogWriter | None = None,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> int:
        """Run a command to its own end; `Halted` if a stop or the timeout ended it."""
        self.check_stop(name)
        left_s = self.deadline - self.clock.monotonic()
        if left_s <= 0:
            raise Halted(self._tell_timeout(name))
        shell = Shell(
            self.work, log or self.log, self.stop, self.clock, timeout_grace_s=self.grace_s
        )
        place = cwd or self.module
        ended = await shell.run(Command(argv, self.env if env is None else env, place), left_s)
        if ended.code is None:
            message = f"`{name}` does not die: look at the runner's machine"
            raise Halted(end_by_stop(Reason.RUNNER_ERROR, message), ended)
        match ended.cause:
            case Cause.EXIT:
                return ended.code
            case Cause.STOP:
                reason = self.stop.reason or Reason.CANCELLED
                raise Halted(end_by_stop(reason, f"stopped in `{name}`: {reason}"), ended)
            case Cause.TIMEOUT:
                raise Halted(self._tell_timeout(name), ended)

    async def capture(
        self,
        name: str,
        argv: tuple[str, ...],
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        quiet: bool = True,
    ) -> tuple[int, str, str]:
        """Run a command whose output is for the runner; answer code, stdout and stderr."""
        kept = CapturingLog(self.log, quiet=quiet, most=MOST_OUTPUT)
        code = await self.run(name, argv, log=kept, env=env, cwd=cwd)
        return code, kept.read(Stream.STDOUT), kept.read(Stream.STDERR)

    async def wait(self, seconds: float) -> None:
        """Wait before another try; a stop ends the wait."""
        self.log.system(f"waiting {seconds:g} s before another try")
        await wait_first(self.clock, seconds, self.stop.wait())
        self.check_stop("the wait")

    def check_stop(self, name: str) -> None:
        """End here if an end is wished for."""
        if self.stop.reason is not None:
            raise Halted(end_by_stop(self.stop.reason, f"stopped before `{name}`"))

    def _tell_timeout(self, name: str) -> Outcome:
        message = (
            f"`{name}` was stopped by the job's timeout of {self.spec.timeout_s:g} s: raise the"
            " component's timeout, or find out in the log what it waited for"
        )
        return fail(Reason.TIMEOUT, message)


async def end_task(task: "asyncio.Task[None]") -> None:
    """End a background task and wait for it."""
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
