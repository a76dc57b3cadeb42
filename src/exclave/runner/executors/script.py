"""Executor of `script` jobs: runs the steps in order; the first failure ends the job."""

from dataclasses import dataclass, field

from exclave.base.clock import Clock
from exclave.runner.jobs.context import (
    TIMEOUT_GRACE_S,
    JobContext,
    JobLimits,
    open_context,
)
from exclave.runner.jobs.environment import ChildSettings
from exclave.runner.jobs.executor import Executor, JobRun, StopRequest, require_spec, run_guarded
from exclave.runner.jobs.outputs import merge_outputs, read_outputs, write_inputs
from exclave.runner.jobs.step_outcome import mask_outputs, run_step, run_steps
from exclave.runner.jobs.workspace import KEEP_FREE_BYTES
from exclave.runner.logs.spool import LogWriter
from exclave.runner.processes.child import Command
from exclave.runner.secrets.store import SecretStore
from exclave.wire.jobs import JsonValue
from exclave.wire.runner import Outcome
from exclave.wire.specs import ScriptSpec, ScriptStep

_EXECUTABLE = 0o700


@dataclass(slots=True)
class _Script:
    """The steps of one execution, and their shared context."""

    context: JobContext
    spec: ScriptSpec
    inputs: dict[str, str]
    """Variables that point to the job's inputs."""
    secrets: dict[str, str]
    outputs: dict[str, JsonValue] = field(default_factory=dict)

    async def run(self) -> Outcome:
        steps = (self._run_step(number, step) for number, step in enumerate(self.spec.steps))
        return await run_steps(steps, self._mask_outputs)

    async def _run_step(self, number: int, step: ScriptStep) -> Outcome | None:
        async def build_command() -> Command:
            return self._build_command(number, step)

        def store_outputs() -> None:
            workspace = self.context.workspace
            with workspace.touch():
                written = read_outputs(workspace.outputs(number))
            self.outputs = merge_outputs(self.outputs, written)

        return await run_step(
            self.context, step.name, build_command, store_outputs, limit_s=step.timeout_s
        )

    def _build_command(self, number: int, step: ScriptStep) -> Command:
        workspace = self.context.workspace
        outputs = workspace.outputs(number)
        workspace.write(outputs, b"")
        env = self.context.build_env(self.spec.env, step.env, self.secrets)
        env |= {**self.inputs, "EXCLAVE_OUTPUTS": str(outputs)}
        argv = tuple(step.argv or ())
        if step.script is not None:
            script = workspace.script(number)
            workspace.write(script, step.script.encode(), mode=_EXECUTABLE)
            argv = (*step.interpreter, str(script))
        return Command(argv, env, workspace.work)

    def _mask_outputs(self) -> dict[str, JsonValue]:
        return mask_outputs(self.context.mask, self.outputs)


class ScriptExecutor(Executor):
    """The executor of `script` jobs."""

    def __init__(
        self,
        settings: ChildSettings,
        secrets: SecretStore,
        clock: Clock,
        *,
        timeout_grace_s: float = TIMEOUT_GRACE_S,
        keep_free_bytes: int = KEEP_FREE_BYTES,
    ) -> None:
        self._settings = settings
        self._secrets = secrets
        self._clock = clock
        self._timeout_grace_s = timeout_grace_s
        self._keep_free_bytes = keep_free_bytes

    async def run(self, job: JobRun, log: LogWriter, stop: StopRequest) -> Outcome:
        """Run the steps and return the outcome, with secrets masked."""
        return await run_guarded(job, log, self._run(job, log, stop))

    async def _run(self, job: JobRun, log: LogWriter, stop: StopRequest) -> Outcome:
        spec = require_spec(job, ScriptSpec)
        limits = JobLimits(spec.timeout_s, self._timeout_grace_s, self._keep_free_bytes)
        context = open_context(
            job, log, stop, clock=self._clock, children=self._settings, limits=limits
        )
        held = await self._secrets.fetch(spec.secrets.values())
        log.hide(held.values())
        secrets = {variable: held[name].reveal() for variable, name in spec.secrets.items()}
        inputs = write_inputs(context.workspace, job.dispatch)
        return await _Script(context, spec, inputs, secrets).run()
