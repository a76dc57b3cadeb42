"""The context that the steps of one job run in: commands, stop request, deadline, log, folder."""

import asyncio
import signal
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from exclave.base.clock import Clock
from exclave.runner.jobs.environment import ChildSettings, build_env
from exclave.runner.jobs.executor import JobRun, StopRequest
from exclave.runner.jobs.role_variables import keep_role
from exclave.runner.jobs.shell import Cause, Ended, Shell
from exclave.runner.jobs.workspace import KEEP_FREE_BYTES, Workspace, prepare_workspace
from exclave.runner.logs.capture import CapturingLog
from exclave.runner.logs.spool import LogWriter
from exclave.runner.outcomes import Stopped, end_by_stop, fail
from exclave.runner.processes.child import Command
from exclave.runner.wakeups import wait_first
from exclave.wire.jobs import Reason
from exclave.wire.logs import Stream

T = TypeVar("T")

TIMEOUT_GRACE_S = 60.0
"""How long a command may take to end after its timeout before it is killed."""

_CAPTURED_BYTES = 512 << 20


@dataclass(frozen=True, slots=True)
class JobLimits:
    """The limits that an executor sets for its jobs."""

    timeout_s: float
    grace_s: float = TIMEOUT_GRACE_S
    keep_free_bytes: int = KEEP_FREE_BYTES


@dataclass(frozen=True, slots=True)
class Captured:
    """Exit code and output of a command."""

    code: int
    stdout: str
    stderr: str
    truncated: bool = False


@dataclass(slots=True)
class JobContext:
    """What the steps of one execution share. Made by `open_context`."""

    job: JobRun
    workspace: Workspace
    log: LogWriter
    stop: StopRequest
    clock: Clock
    children: ChildSettings
    deadline: float
    timeout_s: float
    grace_s: float
    keep_free_bytes: int = KEEP_FREE_BYTES
    """How much of the disk has to stay free while the job runs."""
    identity_env: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    """Variables by which commands get credentials of the job's role."""
    warned: set[str] = field(default_factory=set, kw_only=True)
    """What the log of the job says already: commands share most of their variables."""
    hidden: frozenset[str] = field(default=frozenset(), kw_only=True)
    """Values to mask even where they are too short to be searched for in a longer text."""

    def build_env(self, *layers: Mapping[str, str]) -> dict[str, str]:
        """Return the environment of a command: the runner's settings, then the job's layers.

        In a job with a role, no layer replaces what points to the credentials of that role.
        """
        if self.identity_env:
            layers = tuple(keep_role(layer, self._warn_once) for layer in layers)
        return build_env(self.children, self.workspace, self.identity_env, *layers)

    def _warn_once(self, text: str) -> None:
        if text not in self.warned:
            self.warned.add(text)
            self.log.system(text)

    def mask(self, text: str) -> str:
        """Mask the secrets in a text that leaves the runner."""
        return "***" if text in self.hidden else self.log.mask(text)

    def check(self, before: str = "") -> None:
        """Raise `Stopped` if a stop was requested or the deadline has passed.

        `before` names the step that does not start because of it.
        """
        reason = self.stop.reason
        if reason is not None:
            message = f"stopped before {before}" if before else f"stopped: {reason}"
            raise Stopped(end_by_stop(reason, message))
        if self.clock.monotonic() >= self.deadline:
            raise self._time_out(before or "the job")

    async def run(
        self,
        command: Command,
        *,
        name: str = "",
        log: LogWriter | None = None,
        limit_s: float | None = None,
    ) -> int:
        """Run a command until it exits and return its exit code (negative for a signal).

        `name` stands for the command in messages; `limit_s` is a timeout of its own beside the
        job's. Raises `Stopped` if a stop request or a timeout ended the command, `WorkFailed` if it
        cannot be started.
        """
        label = name or f"`{command.argv[0]}`"
        self.check(label)
        left_s = self.deadline - self.clock.monotonic()
        shell = Shell(
            self.job, log or self.log, self.stop, self.clock, timeout_grace_s=self.grace_s
        )
        ended = await shell.run(command, left_s if limit_s is None else min(left_s, limit_s))
        if ended.code is None:
            message = f"{label} could not be killed (SIGKILL had no effect); check the runner host"
            raise Stopped(end_by_stop(Reason.RUNNER_ERROR, message))
        match ended.cause:
            case Cause.EXIT:
                return ended.code
            case Cause.STOP:
                reason = self.stop.reason or Reason.CANCELLED
                outcome = end_by_stop(reason, f"stopped in {label}: {reason}")
                raise Stopped(outcome, killed=_was_killed(ended))
            case Cause.TIMEOUT:
                own_s = limit_s if limit_s is not None and limit_s <= left_s else None
                raise self._time_out(label, own_s, killed=_was_killed(ended))

    async def capture(
        self,
        command: Command,
        *,
        name: str = "",
        quiet: bool = True,
        most_bytes: int = _CAPTURED_BYTES,
    ) -> Captured:
        """Run a command like `run` and return its output too; `quiet` keeps it off the log."""
        kept = CapturingLog(self.log, quiet=quiet, most=most_bytes)
        code = await self.run(command, name=name, log=kept)
        return Captured(code, kept.read(Stream.STDOUT), kept.read(Stream.STDERR), kept.truncated)

    async def guard(self, work: Coroutine[Any, Any, T], *, name: str) -> T:
        """Await work of the runner itself, such as a transfer; cancel it at a stop or timeout.

        Raises `Stopped` as `run` does. `name` stands for the work in messages.
        """
        try:
            self.check(name)
        except Stopped:
            work.close()
            raise
        task = asyncio.ensure_future(work)
        left_s = max(0.0, self.deadline - self.clock.monotonic())
        try:
            await wait_first(self.clock, left_s, self.stop.wait(), asyncio.wait({task}))
        finally:
            is_done = task.done()
            if not is_done:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        if is_done:
            return task.result()
        if self.stop.reason is not None:
            reason = self.stop.reason
            raise Stopped(end_by_stop(reason, f"stopped in {name}: {reason}"))
        raise self._time_out(name)

    async def pause(self, seconds: float) -> None:
        """Sleep, at most until the deadline. Raises `Stopped` as `check` does."""
        left_s = max(0.0, self.deadline - self.clock.monotonic())
        await wait_first(self.clock, min(seconds, left_s), self.stop.wait())
        self.check()

    def _time_out(self, label: str, own_s: float | None = None, *, killed: bool = False) -> Stopped:
        limit = (
            f"the job's timeout of {self.timeout_s:g} s"
            if own_s is None
            else f"the step's timeout of {own_s:g} s"
        )
        message = (
            f"{label} was stopped by {limit}: raise the timeout, or check the log for what it was"
            " waiting for"
        )
        return Stopped(fail(Reason.TIMEOUT, message), killed=killed)


def open_context(
    job: JobRun,
    log: LogWriter,
    stop: StopRequest,
    *,
    clock: Clock,
    children: ChildSettings,
    limits: JobLimits,
) -> JobContext:
    """Prepare the folders of an execution and return its context; the timeout starts now."""
    workspace = prepare_workspace(job.folder, job.cell.user, keep_free_bytes=limits.keep_free_bytes)
    return JobContext(
        job=job,
        workspace=workspace,
        log=log,
        stop=stop,
        clock=clock,
        children=children,
        deadline=clock.monotonic() + limits.timeout_s,
        timeout_s=limits.timeout_s,
        grace_s=limits.grace_s,
        keep_free_bytes=limits.keep_free_bytes,
        identity_env={} if job.identity is None else job.identity.prepare(workspace),
    )


def _was_killed(ended: Ended) -> bool:
    return ended.code == -signal.SIGKILL
