"""A toy executor, written by following docs/internals/how-to-add-an-executor.md, in a real runner.

A new kind would also need steps 1 and 2 of that page; the toy takes over the kind `noop` instead.
"""

import asyncio
import json
from pathlib import Path

import pytest

from exclave.base.clock import Clock, SystemClock
from exclave.base.ids import SystemRandomness
from exclave.runner.config import RunnerConfig
from exclave.runner.jobs.context import JobContext, JobLimits, open_context
from exclave.runner.jobs.environment import ChildSettings
from exclave.runner.jobs.executor import EndedRun, Executor, JobRun, StopRequest, run_guarded
from exclave.runner.jobs.step_outcome import describe_exit, mask_outputs
from exclave.runner.logs.spool import LogWriter
from exclave.runner.logs.spooled_log import bind_open_log
from exclave.runner.outcomes import WorkFailed
from exclave.runner.processes.child import Command
from exclave.runner.processes.leftovers import kill_leftovers
from exclave.runner.runner import Runner
from exclave.runner.secrets.store import FileSecrets, SecretStore
from exclave.wire.jobs import JobKind, OutcomeState, Reason
from exclave.wire.runner import Outcome, Result, ResultReply
from exclave.wire.specs import NoopSpec
from tests.unit.runner.harness import TOKEN
from tests.unit.runner.logs.test_spooled_log import Archive

RECEIPT = "toy-receipt"


def toy_argv(script: str) -> tuple[str, ...]:
    """Return the command line of the toy's tool (step 3: argv is data)."""
    return ("sh", "-c", script)


class ToyExecutor(Executor):
    """Runs one shell script with a secret in its environment (step 4)."""

    def __init__(self, script: str, secrets: SecretStore, *, timeout_s: float = 60.0) -> None:
        self._script = script
        self._secrets = secrets
        self._timeout_s = timeout_s

    async def run(self, job: JobRun, log: LogWriter, stop: StopRequest) -> Outcome:
        return await run_guarded(job, log, self._run(job, log, stop))

    async def _run(self, job: JobRun, log: LogWriter, stop: StopRequest) -> Outcome:
        if not isinstance(job.dispatch.spec, NoopSpec):
            raise WorkFailed(Reason.KIND_UNSUPPORTED, f"this is a `{job.dispatch.spec.kind}` job")
        context = open_context(
            job,
            log,
            stop,
            clock=SystemClock(),
            children=ChildSettings(),
            limits=JobLimits(self._timeout_s, grace_s=1.0, keep_free_bytes=0),
        )
        return await self._run_tool(context)

    async def _run_tool(self, context: JobContext) -> Outcome:
        held = await self._secrets.fetch(["password"])
        context.log.hide(held.values())
        env = context.build_env({"PASSWORD": held["password"].reveal()})
        (context.job.folder / RECEIPT).write_text("to be kept")
        command = Command(toy_argv(self._script), env, context.workspace.work)
        printed = await context.capture(command, name="`toy`", quiet=False)
        failure = describe_exit("`toy`", printed.code)
        if failure is not None:
            return failure
        outputs = mask_outputs(context.mask, {"printed": printed.stdout.strip()})
        return Outcome(
            state=OutcomeState.SUCCEEDED, reason=Reason.COMPLETED, exit_code=0, outputs=outputs
        )

    async def settle(self, ended: EndedRun) -> None:
        receipt = ended.folder / RECEIPT
        if receipt.exists():
            (ended.data / RECEIPT).write_text(receipt.read_text())


class ToyControl(Archive):
    """A control plane in memory that keeps logs and can be waited for."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.delivered = asyncio.Event()

    async def hand_in(self, token: str, execution_id: str, request: Result) -> ResultReply:
        reply = await super().hand_in(token, execution_id, request)
        self.delivered.set()
        return reply

    async def wait_for_result(self, execution_id: str) -> Outcome:
        await self.delivered.wait()
        outcome = self.result_of(execution_id)
        assert outcome is not None
        return outcome


class ToyRunner:
    """A runner whose only executor is the toy, with a control plane in memory."""

    def __init__(self, folder: Path, script: str, *, timeout_s: float = 60.0) -> None:
        clock, randomness = SystemClock(), SystemRandomness()
        secrets = folder / "secrets.json"
        secrets.write_text(json.dumps({"password": "hunter2-hunter2"}))
        secrets.chmod(0o600)
        self.control = ToyControl(clock)
        self.data = folder / "data"
        self.runner = Runner(
            RunnerConfig(self.data, "http://control", keep_free_bytes=0, reserve_bytes=0),
            api=self.control,
            clock=clock,
            randomness=randomness,
            executors={
                JobKind.NOOP: ToyExecutor(script, FileSecrets(secrets), timeout_s=timeout_s)
            },
            open_log=bind_open_log(clock, randomness),
            kill_leftovers=kill_leftovers,
            enrolment_token=TOKEN,
        )

    async def run_job(self, *, stop_after_s: float | None = None) -> Outcome:
        execution = self.control.add_job()
        running = asyncio.create_task(self.runner.run())
        if stop_after_s is not None:
            await asyncio.sleep(stop_after_s)
            self.runner.request_stop()
        async with asyncio.timeout(30):
            outcome = await self.control.wait_for_result(execution)
        self.runner.request_stop()
        await running
        assert list((self.data / "executions").iterdir()) == []
        return outcome


async def test_a_toy_executor_runs_its_tool_and_masks_what_leaves_the_runner(
    tmp_path: Path,
) -> None:
    toy = ToyRunner(tmp_path, "echo password is $PASSWORD")

    outcome = await toy.run_job()

    assert (outcome.state, outcome.outputs) == (
        OutcomeState.SUCCEEDED,
        {"printed": "password is ***"},
    )
    assert outcome.log_end > 0
    assert b"password is ***" in toy.control.stream
    assert (toy.data / RECEIPT).read_text() == "to be kept"


@pytest.mark.parametrize(
    ("script", "timeout_s", "reason", "message"),
    [
        ("exit 3", 60.0, Reason.EXIT_CODE, "`toy` ended with exit code 3"),
        ("sleep 60", 0.5, Reason.TIMEOUT, "`toy` was stopped by the job's timeout of 0.5 s"),
    ],
)
async def test_a_failed_tool_is_an_outcome(
    tmp_path: Path, script: str, timeout_s: float, reason: Reason, message: str
) -> None:
    outcome = await ToyRunner(tmp_path, script, timeout_s=timeout_s).run_job()

    assert (outcome.state, outcome.reason) == (OutcomeState.FAILED, reason)
    assert outcome.message.startswith(message)


async def test_a_stopped_runner_ends_the_toys_command(tmp_path: Path) -> None:
    outcome = await ToyRunner(tmp_path, "sleep 60").run_job(stop_after_s=1.5)

    assert outcome.state is OutcomeState.INTERRUPTED
    assert outcome.message == "stopped in `toy`: runner_restarted"
