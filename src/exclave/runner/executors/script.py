"""Runs the steps of a `script` job in order; the first failure ends it."""

import errno
from dataclasses import dataclass, field

from exclave.base.clock import Clock
from exclave.base.logs import Log
from exclave.base.secrets import Secret
from exclave.runner.jobs.environment import ChildSettings, build_env
from exclave.runner.jobs.executor import MESSAGE_CHARS, Stop, Work, WorkFailed, end_by_stop, fail
from exclave.runner.jobs.outputs import merge_outputs, read_outputs, write_inputs
from exclave.runner.jobs.shell import Shell
from exclave.runner.jobs.step_outcome import Limits, judge, mask_outputs, tell_timeout
from exclave.runner.jobs.workspace import KEEP_FREE_BYTES, Workspace, prepare_workspace
from exclave.runner.logs.spool import LogWriter
from exclave.runner.processes.child import Command
from exclave.runner.secrets.store import SecretStore
from exclave.wire.jobs import JsonValue, OutcomeState, Reason, ScriptSpec, ScriptStep
from exclave.wire.runner import Outcome

_log = Log("runner.script")

_EXECUTABLE = 0o700


@dataclass(slots=True)
class _Job:
    """What the steps of one execution share."""

    spec: ScriptSpec
    shell: Shell
    log: LogWriter
    stop: Stop
    workspace: Workspace
    ours: dict[str, str]
    secrets: dict[str, str]
    deadline: float
    outputs: dict[str, JsonValue] = field(default_factory=dict)


class ScriptExecutor:
    """The executor of `script` jobs."""

    def __init__(
        self,
        settings: ChildSettings,
        secrets: SecretStore,
        clock: Clock,
        *,
        timeout_grace_s: float = 60.0,
        keep_free_bytes: int = KEEP_FREE_BYTES,
    ) -> None:
        self._settings = settings
        self._secrets = secrets
        self._clock = clock
        self._timeout_grace_s = timeout_grace_s
        self._keep_free_bytes = keep_free_bytes

    async def run(self, work: Work, log: LogWriter, stop: Stop) -> Outcome:
        """Run the steps and tell how it ended; texts that leave the runner are masked."""
        try:
            outcome = await self._run(work, log, stop)
        except WorkFailed as failed:
            outcome = failed.outcome()
        except OSError as error:
            _log.error("script_failed", exc=error, execution=work.dispatch.execution_id)
            full = error.errno in {errno.ENOSPC, errno.EDQUOT}
            outcome = fail(
                Reason.DISK_FULL if full else Reason.RUNNER_ERROR,
                f"the runner could not prepare the work: {error.strerror}",
            )
        if outcome.message:
            log.system(outcome.message)
        return outcome.model_copy(update={"message": log.mask(outcome.message)[:MESSAGE_CHARS]})

    async def _run(self, work: Work, log: LogWriter, stop: Stop) -> Outcome:
        spec = work.dispatch.spec
        if not isinstance(spec, ScriptSpec):
            raise WorkFailed(Reason.KIND_UNSUPPORTED, f"this is a `{spec.kind}` job")
        deadline = self._clock.monotonic() + spec.timeout_s
        held = await self._secrets.fetch(spec.secrets.values())
        log.hide(held.values())
        workspace = prepare_workspace(
            work.folder, work.cell.user, keep_free_bytes=self._keep_free_bytes
        )
        job = _Job(
            spec=spec,
            shell=Shell(work, log, stop, self._clock, timeout_grace_s=self._timeout_grace_s),
            log=log,
            stop=stop,
            workspace=workspace,
            ours=write_inputs(workspace, work.dispatch),
            secrets=_name_secrets(spec, held),
            deadline=deadline,
        )
        for at, step in enumerate(spec.steps):
            failure = await self._run_step(job, at, step)
            if failure is not None:
                return failure.model_copy(update={"outputs": mask_outputs(log, job.outputs)})
        return Outcome(
            state=OutcomeState.SUCCEEDED,
            reason=Reason.COMPLETED,
            exit_code=0,
            outputs=mask_outputs(log, job.outputs),
        )

    async def _run_step(self, job: _Job, at: int, step: ScriptStep) -> Outcome | None:
        if job.stop.reason is not None:
            return end_by_stop(job.stop.reason, f"stopped before step `{step.name}`")
        left_s = job.deadline - self._clock.monotonic()
        timeout_s = min(left_s, step.timeout_s or left_s)
        if timeout_s <= 0:
            return tell_timeout(_limits(job, step), timeout_s)
        job.log.system(f"▸ step {step.name}")
        try:
            ended = await job.shell.run(self._build_command(job, at, step), timeout_s)
            failure = judge(_limits(job, step), job.stop, ended, timeout_s)
            if failure is None:
                job.outputs = merge_outputs(job.outputs, _read_outputs(job, at))
        except WorkFailed as failed:
            return fail(failed.reason, f"step `{step.name}`: {failed.message}")
        return failure

    def _build_command(self, job: _Job, at: int, step: ScriptStep) -> Command:
        outputs = job.workspace.outputs(at)
        job.workspace.write(outputs, b"")
        env = build_env(self._settings, job.workspace, job.spec.env, step.env, job.secrets)
        env |= {**job.ours, "EXCLAVE_OUTPUTS": str(outputs)}
        argv = tuple(step.argv or ())
        if step.script is not None:
            script = job.workspace.script(at)
            job.workspace.write(script, step.script.encode(), mode=_EXECUTABLE)
            argv = (*step.interpreter, str(script))
        return Command(argv, env, job.workspace.work)


def _read_outputs(job: _Job, at: int) -> dict[str, JsonValue]:
    with job.workspace.touch():
        return read_outputs(job.workspace.outputs(at))


def _name_secrets(spec: ScriptSpec, held: dict[str, Secret]) -> dict[str, str]:
    return {variable: held[name].reveal() for variable, name in spec.secrets.items()}


def _limits(job: _Job, step: ScriptStep) -> Limits:
    return Limits(step.name, step.timeout_s, job.spec.timeout_s)
