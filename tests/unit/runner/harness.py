"""A runner on virtual time with everything around it in memory, except its data folder."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any

from exclave.base.clock import Clock
from exclave.base.ids import SeededRandomness
from exclave.base.secrets import Secret
from exclave.runner.audit import verify_audit
from exclave.runner.config import RunnerConfig
from exclave.runner.executions.stats import Machine
from exclave.runner.jobs.executor import Executor, JobRun, StopRequest
from exclave.runner.logs.protocols import SendLog, ShippedLog
from exclave.runner.logs.spool import LogWriter
from exclave.runner.outcomes import end_by_stop
from exclave.runner.runner import Duty, Runner
from exclave.wire.jobs import JobKind, OutcomeState, Reason
from exclave.wire.logs import Stream
from exclave.wire.runner import Outcome
from tests.support.virtual_time import VirtualClock, run_virtual
from tests.unit.runner.fake_control import FakeControl

TOKEN = "xce_" + "0" * 52


class FakeWriter:
    """Records what is written."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def hide(self, secrets: Iterable[Secret]) -> None: ...
    def flush(self) -> None: ...
    def end_streams(self) -> None: ...

    def mask(self, text: str) -> str:
        return text

    def write(self, stream: Stream, data: bytes) -> None:
        self.lines.append(data.decode())

    def system(self, text: str) -> None:
        self.lines.append(text)

    def close(self) -> tuple[int, str]:
        return len("".join(self.lines)), "0" * 64


class FakeLog:
    """A log that ships immediately."""

    def __init__(self) -> None:
        self.kept = FakeWriter()
        self.end = 0
        self.backlog = 0

    @property
    def writer(self) -> LogWriter:
        return self.kept

    async def close(self) -> tuple[int, str]:
        return self.kept.close()

    async def run(self) -> None: ...

    async def drain(self, timeout_s: float) -> bool:
        return True


class FakeExecutor(Executor):
    """Works for a while; counts how often each execution ran and remembers how it was stopped."""

    def __init__(self, clock: Clock, *, lasts_s: float = 1.0, stops_in_s: float = 1.0) -> None:
        self.clock = clock
        self.lasts_s = lasts_s
        self.stops_in_s = stops_in_s
        self.runs: Counter[str] = Counter()
        self.running: dict[str, None] = {}
        self.stopped: dict[str, tuple[Reason, float]] = {}
        self.began: dict[str, float] = {}

    async def run(self, job: JobRun, log: LogWriter, stop: StopRequest) -> Outcome:
        name = job.dispatch.execution_id
        self.runs[name] += 1
        self.running[name] = None
        self.began[name] = self.clock.monotonic()
        log.system("began")
        working = asyncio.ensure_future(self.clock.sleep(self.lasts_s))
        stopping = asyncio.ensure_future(stop.wait())
        try:
            await asyncio.wait((working, stopping), return_when=asyncio.FIRST_COMPLETED)
        finally:
            working.cancel()
            stopping.cancel()
        if stop.reason is not None:
            self.stopped[name] = (stop.reason, self.clock.monotonic())
            await self.clock.sleep(min(self.stops_in_s, stop.grace_s))
            del self.running[name]
            return end_by_stop(stop.reason, "stopped")
        del self.running[name]
        return Outcome(state=OutcomeState.SUCCEEDED, reason=Reason.COMPLETED, outputs={"a": 1})


class RunnerHarness:
    """A fake control plane, a data folder, and a runner that can be started any number of times."""

    def __init__(self, folder: Path, *, lasts_s: float = 1.0, **config: Any) -> None:
        self.clock = VirtualClock()
        self.control = FakeControl(self.clock)
        self.executor = FakeExecutor(self.clock, lasts_s=lasts_s)
        facts: dict[str, Any] = {"keep_free_bytes": 0, "reserve_bytes": 0, **config}
        self.config = RunnerConfig(data=folder / "data", runner_url="http://control", **facts)
        self.logs: dict[str, FakeLog] = {}
        self.killed: list[str] = []
        self.free_bytes = 1 << 40
        self.seed = 7
        self.duties: list[Duty] = []
        self.leave: Duty | None = None
        self.pinned: dict[str, str] | None = None

    def build(self) -> Runner:
        self.seed += 1
        return Runner(
            self.config,
            api=self.control,
            clock=self.clock,
            randomness=SeededRandomness(self.seed),
            executors={JobKind.NOOP: self.executor},
            open_log=self.open_log,
            kill_leftovers=self.kill_leftovers,
            measure=lambda _: Machine(load=0.0, memory_bytes=0, disk_free_bytes=self.free_bytes),
            enrolment_token=TOKEN,
            pinned=self.pinned,
            duties=self.duties,
            leave=self.leave,
        )

    def start(self) -> tuple[Runner, "asyncio.Task[None]"]:
        runner = self.build()
        return runner, asyncio.create_task(runner.run())

    async def crash(self, task: "asyncio.Task[None]") -> None:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await asyncio.sleep(0)
        self.executor.running.clear()

    async def stop(self, runner: Runner, task: "asyncio.Task[None]") -> None:
        runner.request_stop()
        await task

    def open_log(self, folder: Path, execution_id: str, send: SendLog) -> ShippedLog:
        return self.logs.setdefault(execution_id, FakeLog())

    async def kill_leftovers(self, folder: Path, clock: Clock) -> bool:
        self.killed.append(folder.name)
        return True

    def audit_events(self) -> list[str]:
        file = self.config.data / "audit.jsonl"
        assert verify_audit(file).ok
        return [line.split('"event":"')[1].split('"')[0] for line in file.read_text().splitlines()]


def run_scenario(
    folder: Path,
    scenario: Callable[[RunnerHarness], Awaitable[None]],
    build: Callable[..., RunnerHarness] = RunnerHarness,
    **config: Any,
) -> RunnerHarness:
    """Run a scenario in a new harness, on virtual time, and return the harness."""

    async def main() -> RunnerHarness:
        harness = build(folder, **config)
        await scenario(harness)
        return harness

    return run_virtual(main())


def expect(outcome: Outcome | None, state: OutcomeState, reason: Reason) -> None:
    """Check how an execution ended."""
    assert outcome is not None
    assert (outcome.state, outcome.reason) == (state, reason)
