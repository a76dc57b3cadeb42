"""Runs the steps of an action in order; the first failure ends it."""

import errno
from dataclasses import dataclass, field
from pathlib import Path

from exclave.base.clock import Clock
from exclave.base.logs import Log
from exclave.runner.jobs.artifacts import OpenPuller, fetch_artifact
from exclave.runner.jobs.environment import ChildSettings, build_env
from exclave.runner.jobs.executor import MESSAGE_CHARS, Stop, Work, WorkFailed, end_by_stop, fail
from exclave.runner.jobs.outputs import merge_outputs, read_line_outputs
from exclave.runner.jobs.placeholders import Filler, gather_values
from exclave.runner.jobs.shell import Shell
from exclave.runner.jobs.step_outcome import Limits, judge, mask_outputs, tell_timeout
from exclave.runner.jobs.workspace import KEEP_FREE_BYTES, Workspace, prepare_workspace
from exclave.runner.logs.spool import LogWriter
from exclave.runner.processes.child import Command
from exclave.runner.secrets.sealing import Sealer
from exclave.runner.secrets.store import SecretStore
from exclave.wire.jobs import JsonValue, OutcomeState, Reason
from exclave.wire.runner import Outcome
from exclave.wire.specs import ActionSpec, ActionStep

_log = Log("runner.action")

_EXECUTABLE = 0o700
_ANY_EXECUTES = 0o111
_GRACE_S = 60.0


@dataclass(slots=True)
class _Run:
    """What the steps of one run share."""

    spec: ActionSpec
    work: Work
    log: LogWriter
    stop: Stop
    shell: Shell
    workspace: Workspace
    filler: Filler
    deadline: float
    flat: dict[str, JsonValue] = field(default_factory=dict)
    by_step: dict[str, JsonValue] = field(default_factory=dict)

    @property
    def outputs(self) -> dict[str, JsonValue]:
        """All outputs: flat, and once more under the step that wrote them."""
        told = {**self.flat, "steps": self.by_step} if self.by_step else dict(self.flat)
        return mask_outputs(self.log, told)


class ActionExecutor:
    """The executor of `action` jobs."""

    def __init__(
        self,
        settings: ChildSettings,
        secrets: SecretStore,
        sealer: Sealer,
        open_registry: OpenPuller,
        clock: Clock,
        *,
        keep_free_bytes: int = KEEP_FREE_BYTES,
    ) -> None:
        self._settings = settings
        self._secrets = secrets
        self._sealer = sealer
        self._open_registry = open_registry
        self._clock = clock
        self._keep_free_bytes = keep_free_bytes

    async def run(self, work: Work, log: LogWriter, stop: Stop) -> Outcome:
        """Run the steps and tell how it ended; texts that leave the runner are masked."""
        try:
            outcome = await self._run(work, log, stop)
        except WorkFailed as failed:
            outcome = failed.outcome()
        except OSError as error:
            _log.error("action_failed", exc=error, execution=work.dispatch.execution_id)
            full = error.errno in {errno.ENOSPC, errno.EDQUOT}
            reason = Reason.DISK_FULL if full else Reason.RUNNER_ERROR
            outcome = fail(reason, f"the runner could not prepare the work: {error.strerror}")
        if outcome.message:
            log.system(outcome.message)
        return outcome.model_copy(update={"message": log.mask(outcome.message)[:MESSAGE_CHARS]})

    async def _run(self, work: Work, log: LogWriter, stop: Stop) -> Outcome:
        spec = work.dispatch.spec
        if not isinstance(spec, ActionSpec):
            raise WorkFailed(Reason.KIND_UNSUPPORTED, f"this is a `{spec.kind}` job")
        texts = [*spec.env.values(), *(text for each in spec.steps for text in each.env.values())]
        run = _Run(
            spec,
            work,
            log,
            stop,
            shell=Shell(work, log, stop, self._clock, timeout_grace_s=_GRACE_S),
            workspace=prepare_workspace(
                work.folder, work.cell.user, keep_free_bytes=self._keep_free_bytes
            ),
            filler=await gather_values(work, log, texts, self._secrets, self._sealer),
            deadline=self._clock.monotonic() + spec.timeout_s,
        )
        for at, step in enumerate(spec.steps):
            failure = await self._run_step(run, at, step)
            if failure is not None:
                return failure.model_copy(update={"outputs": run.outputs})
        return Outcome(
            state=OutcomeState.SUCCEEDED, reason=Reason.COMPLETED, exit_code=0, outputs=run.outputs
        )

    async def _run_step(self, run: _Run, at: int, step: ActionStep) -> Outcome | None:
        limits = Limits(step.name, None, run.spec.timeout_s)
        if run.stop.reason is not None:
            return end_by_stop(run.stop.reason, f"stopped before step `{step.name}`")
        run.log.system(f"▸ step {step.name}")
        try:
            command = await self._build_command(run, at, step)
            timeout_s = run.deadline - self._clock.monotonic()
            if timeout_s <= 0:
                return tell_timeout(limits, timeout_s)
            failure = judge(limits, run.stop, await run.shell.run(command, timeout_s), timeout_s)
            if failure is None:
                _take_outputs(run, at, step)
        except WorkFailed as failed:
            return fail(failed.reason, f"step `{step.name}`: {failed.message}")
        return failure

    async def _build_command(self, run: _Run, at: int, step: ActionStep) -> Command:
        folder = run.workspace.work
        if step.artifact is not None:
            folder = run.workspace.work / f"source-{at}"
            await fetch_artifact(
                self._open_registry, run.work, run.workspace, step.artifact, folder
            )
        outputs = run.workspace.outputs(at)
        run.workspace.write(outputs, b"")
        layers = [_fill(run.filler, each) for each in (step.env, run.spec.env)]
        env = build_env(self._settings, run.workspace, *layers)
        env |= {
            "NUON_ACTIONS_ROOT": str(run.workspace.work),
            "NUON_ACTIONS_OUTPUT_FILEPATH": str(outputs),
            "EXCLAVE_OUTPUTS": str(outputs),
        }
        return Command(_build_argv(run.workspace, at, step, folder), env, folder)


def _fill(filler: Filler, env: dict[str, str]) -> dict[str, str]:
    return {name: filler.fill(value) for name, value in env.items()}


def _build_argv(workspace: Workspace, at: int, step: ActionStep, folder: Path) -> tuple[str, ...]:
    """Run a script by its `#!` line, or a command: one of the source's folder before others."""
    if step.script is not None:
        script = workspace.script(at)
        text = step.script if step.script.startswith("#!") else f"#!/bin/sh\n{step.script}"
        workspace.write(script, text.encode(), mode=_EXECUTABLE)
        return (str(script),)
    first, *rest = step.argv or [""]
    own = folder / first
    with workspace.touch():
        inside = own.resolve().is_relative_to(folder.resolve())
        found = inside and own.is_file() and bool(own.stat().st_mode & _ANY_EXECUTES)
    return (str(own), *rest) if found else (first, *rest)


def _take_outputs(run: _Run, at: int, step: ActionStep) -> None:
    with run.workspace.touch():
        written = read_line_outputs(run.workspace.outputs(at))
    if written:
        run.flat = merge_outputs(run.flat, written)
        run.by_step[step.name] = dict(written)
