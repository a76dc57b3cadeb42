"""The executor contract: what an executor is given, how it is stopped, how its run is guarded."""

import asyncio
import errno
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from exclave.base.errors import Problem
from exclave.base.logs import Log
from exclave.client.problems import Unreachable
from exclave.client.retry import RetryPolicy
from exclave.runner.control_plane.access_token import IdentityRefused
from exclave.runner.control_plane.execution_api import Uplink
from exclave.runner.jobs.identity import JobIdentity
from exclave.runner.logs.masking import Mask
from exclave.runner.logs.spool import LogWriter
from exclave.runner.outcomes import MESSAGE_CHARS, Stopped, WorkFailed, fail
from exclave.runner.processes.cell import NO_CELL, Cell
from exclave.wire.jobs import Reason
from exclave.wire.runner import Dispatch, Outcome

_log = Log("runner.executors")

SpecT = TypeVar("SpecT")

_DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


@dataclass(frozen=True, slots=True)
class JobRun:
    """One execution of a job, permitted to start.

    `folder` belongs to the execution: `log/` (the spool), `process.json` (the process started
    last), other records of the runner, and `job/`, the only part that its commands may touch.
    """

    dispatch: Dispatch
    folder: Path
    uplink: Uplink
    cell: Cell = NO_CELL
    identity: JobIdentity | None = None
    """The role of the job in the customer's account; None if it has none."""


class StopRequest:
    """A request to stop a job; the first reason wins. For use within the event loop only."""

    def __init__(self) -> None:
        self.reason: Reason | None = None
        self.grace_s = 0.0
        self._event = asyncio.Event()

    def request(self, reason: Reason, grace_s: float) -> None:
        """Request a stop within `grace_s` seconds; later requests change nothing."""
        if self.reason is None:
            self.reason = reason
            self.grace_s = grace_s
            self._event.set()

    async def wait(self) -> None:
        """Return once a stop is requested."""
        await self._event.wait()


@dataclass(frozen=True, slots=True)
class EndedRun:
    """An execution that has ended, and whose folder is removed once its result is delivered."""

    folder: Path
    uplink: Uplink
    patience: RetryPolicy
    """How long to retry calls to the control plane."""
    data: Path
    """The runner's data folder, for what has to outlive the execution's folder."""
    mask: Mask


class Executor(Protocol):
    """Runs jobs of one kind."""

    async def run(self, job: JobRun, log: LogWriter, stop: StopRequest) -> Outcome:
        """Run a job to its end and return the outcome.

        A failed tool is an outcome, never an exception (see `run_guarded`). After a stop request
        it returns within the grace period plus two seconds, with no process of the job left.
        """
        ...

    async def settle(self, ended: EndedRun) -> None:
        """Save what an execution left in its folder and must not be lost; by default nothing.

        Called for every ended execution before its result is delivered, also after a restart of
        the runner, and not only for jobs of this executor's kind: ignore a folder without files
        of this executor. May be called twice for the same execution.
        """
        del ended


def require_spec(job: JobRun, kind: type[SpecT]) -> SpecT:
    """Return the specification of a job; raise `WorkFailed` if it is one of another kind."""
    spec = job.dispatch.spec
    if not isinstance(spec, kind):
        raise WorkFailed(Reason.KIND_UNSUPPORTED, f"this is a `{spec.kind}` job")
    return spec


def classify_problem(problem: Problem) -> Reason:
    """Return the reason for a failed call to the control plane."""
    return Reason.NETWORK if isinstance(problem, Unreachable) else Reason.RUNNER_ERROR


async def run_guarded(
    job: JobRun,
    log: LogWriter,
    running: Awaitable[Outcome],
    *,
    prefix: Callable[[], str] = str,
    classify: Callable[[Problem], Reason] = classify_problem,
) -> Outcome:
    """Await an executor's work and turn every expected exception into an outcome.

    The outcome's message is logged and masked. `prefix` is put before the message of a failure;
    `classify` chooses the reason for a `Problem`. A refused identity is raised: it ends the runner.
    """
    try:
        outcome = await running
    except Stopped as stopped:
        outcome = _prepend(prefix(), stopped.outcome)
    except WorkFailed as failed:
        outcome = _prepend(prefix(), failed.outcome)
    except IdentityRefused:
        raise
    except Problem as problem:
        message = f"{problem.message}. {problem.advice}".strip()
        outcome = _prepend(prefix(), fail(classify(problem), message))
    except OSError as error:
        _log.error("job_failed", exc=error, execution=job.dispatch.execution_id)
        reason = Reason.DISK_FULL if error.errno in _DISK_FULL else Reason.RUNNER_ERROR
        outcome = _prepend(prefix(), fail(reason, f"the runner failed: {error.strerror}"))
    if outcome.message:
        log.system(outcome.message)
    return outcome.model_copy(update={"message": log.mask(outcome.message)[:MESSAGE_CHARS]})


def _prepend(prefix: str, outcome: Outcome) -> Outcome:
    return outcome.model_copy(update={"message": (prefix + outcome.message)[:MESSAGE_CHARS]})
