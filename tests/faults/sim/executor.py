"""Work whose effects are outside: each step is a call to a cloud, and a line in the log."""

import asyncio
from collections.abc import Sequence
from random import Random

from exclave.base.clock import Clock
from exclave.base.digests import digest_json
from exclave.base.secrets import Secret
from exclave.runner.jobs.executor import Executor, JobRun, StopRequest
from exclave.runner.logs.spool import LogWriter
from exclave.runner.outcomes import end_by_stop, fail
from exclave.wire.jobs import OutcomeState, Reason
from exclave.wire.logs import Stream
from exclave.wire.runner import Dispatch, Outcome
from tests.faults.sim.ledger import Call, Cloud
from tests.faults.sim.mix import Mix

_QUICK_END_S = 20.0
_LONG = 0.15
"""How often work takes so long that the dead-man timers matter."""


CANARY = "canary-6f1d0c9b"
"""A secret that every job prints."""


class Child:
    """The process of one execution; it may outlive the runner that started it."""

    def __init__(
        self, dispatch: Dispatch, cloud: Cloud, clock: Clock, durations: Sequence[float]
    ) -> None:
        self.dispatch = dispatch
        self.log: LogWriter | None = None
        self._cloud = cloud
        self._clock = clock
        self._durations = durations
        self._call: Call | None = None
        self.task: asyncio.Task[None] = asyncio.get_running_loop().create_task(self._work())

    @property
    def is_done(self) -> bool:
        """Tell whether all steps were done."""
        return self.task.done() and not self.task.cancelled()

    def kill(self) -> None:
        """End it at once; a call under way is cut off."""
        self.task.cancel()
        if self._call is not None:
            self._cloud.end(self._call)

    async def _work(self) -> None:
        for step, duration in enumerate(self._durations):
            self._call = self._cloud.begin(self.dispatch, step)
            await self._clock.sleep(duration)
            self._cloud.end(self._call)
            self._call = None
            if self.log is not None:
                self.log.write(Stream.STDOUT, f"step {step} is done: {CANARY}\n".encode())
        self._cloud.finished[self.dispatch.execution_id] = None


class SimExecutor(Executor):
    """Keeps to the contract of an executor: ends within the grace, tells what happened."""

    def __init__(
        self, cloud: Cloud, clock: Clock, of_children: Clock, random: Random, mix: Mix
    ) -> None:
        self._cloud = cloud
        self._clock = clock
        self._of_children = of_children
        self._random = random
        self._mix = mix
        self.children: dict[str, Child] = {}

    async def run(self, job: JobRun, log: LogWriter, stop: StopRequest) -> Outcome:
        dispatch = job.dispatch
        self._cloud.begin_run(dispatch)
        log.hide([Secret(CANARY)])
        log.system(f"began {dispatch.execution_id}")
        durations = self._draw_durations(dispatch)
        child = Child(dispatch, self._cloud, self._of_children, durations)
        child.log = log
        self.children[dispatch.execution_id] = child
        stopping = asyncio.ensure_future(stop.wait())
        try:
            await asyncio.wait((child.task, stopping), return_when=asyncio.FIRST_COMPLETED)
            await self._clock.sleep(0)
            if not child.is_done:
                return await self._end(child, stop)
        finally:
            stopping.cancel()
        del self.children[dispatch.execution_id]
        return self._conclude(dispatch)

    def _draw_durations(self, dispatch: Dispatch) -> list[float]:
        long = self._random.random() < _LONG
        longest = (300.0 if long else 60.0) if dispatch.mutating else (50.0 if long else 10.0)
        steps = range(self._random.randint(1, 3))
        drawn = [self._random.uniform(1.0, longest) for _ in steps]
        return drawn if self._mix.step_s is None else [self._mix.step_s] * 3

    async def _end(self, child: Child, stop: StopRequest) -> Outcome:
        """Some tools end soon after the signal, some only by force."""
        polite = self._random.random() < 0.7
        longest = min(_QUICK_END_S, stop.grace_s) if polite else stop.grace_s
        await self._clock.sleep(longest * (self._random.random() if polite else 1.0))
        child.kill()
        del self.children[child.dispatch.execution_id]
        return end_by_stop(stop.reason or Reason.RUNNER_ERROR, "stopped")

    def _conclude(self, dispatch: Dispatch) -> Outcome:
        if self._random.random() < self._mix.fail:
            return fail(Reason.EXIT_CODE, "failed by itself", exit_code=1)
        digest = digest_json([dispatch.job_id, dispatch.epoch])
        return Outcome(
            state=OutcomeState.SUCCEEDED,
            reason=Reason.COMPLETED,
            exit_code=0,
            outputs={"digest": digest},
        )
