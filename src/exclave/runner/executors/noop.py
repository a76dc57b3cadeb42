"""Executor of `noop` jobs: does nothing."""

from exclave.runner.jobs.executor import Executor, JobRun, StopRequest
from exclave.runner.logs.spool import LogWriter
from exclave.runner.outcomes import end_by_stop
from exclave.wire.jobs import OutcomeState, Reason
from exclave.wire.runner import Outcome


class NoopExecutor(Executor):
    """The executor of `noop` jobs."""

    async def run(self, job: JobRun, log: LogWriter, stop: StopRequest) -> Outcome:  # noqa: ARG002
        """Succeed at once, unless a stop was requested before."""
        if stop.reason is not None:
            return end_by_stop(stop.reason, "stopped before it began")
        log.system("nothing to do")
        return Outcome(state=OutcomeState.SUCCEEDED, reason=Reason.COMPLETED)
