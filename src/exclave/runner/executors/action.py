"""Executor of `action` jobs: runs the steps in order; the first failure ends the job."""

import os
import shutil
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from exclave.base.clock import Clock
from exclave.runner.jobs.artifacts import OpenPuller, fetch_artifact
from exclave.runner.jobs.context import TIMEOUT_GRACE_S, JobContext, JobLimits, open_context
from exclave.runner.jobs.environment import ChildSettings
from exclave.runner.jobs.executor import Executor, JobRun, StopRequest, require_spec, run_guarded
from exclave.runner.jobs.outputs import merge_outputs, read_line_outputs
from exclave.runner.jobs.placeholders import Filler, gather_values
from exclave.runner.jobs.step_outcome import mask_outputs, run_step, run_steps
from exclave.runner.jobs.workspace import KEEP_FREE_BYTES, Workspace
from exclave.runner.kube.access.clusters import list_texts
from exclave.runner.kube.access.command_access import CommandAccess
from exclave.runner.kube.api.errors import classify
from exclave.runner.logs.spool import LogWriter
from exclave.runner.outcomes import WorkFailed
from exclave.runner.processes.child import Command
from exclave.runner.secrets.sealing import Sealer
from exclave.runner.secrets.store import SecretStore
from exclave.runner.tools.finder import ToolFinder
from exclave.runner.tools.job_tools import find_job_tool
from exclave.wire.jobs import JsonValue
from exclave.wire.runner import Outcome
from exclave.wire.specs import ActionSpec, ActionStep

_EXECUTABLE = 0o700
_ANY_EXECUTES = 0o111


@dataclass(slots=True)
class _Action:
    """The steps of one execution, and their shared context."""

    context: JobContext
    spec: ActionSpec
    filler: Filler
    open_registry: OpenPuller
    access_env: Mapping[str, str] = field(default_factory=dict)
    """Variables of the access to a cluster; they win over those of the action."""
    outputs: dict[str, JsonValue] = field(default_factory=dict)
    outputs_by_step: dict[str, JsonValue] = field(default_factory=dict)

    async def run(self) -> Outcome:
        steps = (self._run_step(number, step) for number, step in enumerate(self.spec.steps))
        return await run_steps(steps, self._mask_outputs)

    async def _run_step(self, number: int, step: ActionStep) -> Outcome | None:
        async def build_command() -> Command:
            return await self._build_command(number, step)

        def store_outputs() -> None:
            with self.context.workspace.touch():
                written = read_line_outputs(self.context.workspace.outputs(number))
            if written:
                self.outputs = merge_outputs(self.outputs, written)
                self.outputs_by_step[step.name] = dict(written)

        return await run_step(self.context, step.name, build_command, store_outputs)

    async def _build_command(self, number: int, step: ActionStep) -> Command:
        job, workspace = self.context.job, self.context.workspace
        folder = workspace.work
        if step.artifact is not None:
            folder = workspace.work / f"source-{number}"
            await fetch_artifact(self.open_registry, job, workspace, step.artifact, folder)
        outputs = workspace.outputs(number)
        workspace.write(outputs, b"")
        layers = [_fill(self.filler, layer) for layer in (step.env, self.spec.env)]
        env = self.context.build_env(*layers)
        env |= {
            "NUON_ACTIONS_ROOT": str(workspace.work),
            "NUON_ACTIONS_OUTPUT_FILEPATH": str(outputs),
            "EXCLAVE_OUTPUTS": str(outputs),
            **self.access_env,
        }
        return Command(_build_argv(workspace, number, step, folder), env, folder)

    def _mask_outputs(self) -> dict[str, JsonValue]:
        """Return all outputs, masked: flat, and once more under the step that wrote them."""
        outputs = dict(self.outputs)
        if self.outputs_by_step:
            outputs["steps"] = self.outputs_by_step
        return mask_outputs(self.context.mask, outputs)


@dataclass(frozen=True, slots=True)
class ClusterTools:
    """What actions need to work on clusters."""

    access: CommandAccess
    finder: ToolFinder

    async def find_kubectl(self, context: JobContext) -> dict[str, str]:
        """Return a PATH with kubectl; nothing but a line of the log if there is none."""
        path = context.children.path
        if shutil.which("kubectl", path=path) is not None:
            return {}
        try:
            tool = await find_job_tool(self.finder, context, "kubectl")
        except WorkFailed as failed:
            context.log.system(f"kubectl is not on PATH: {failed.message}")
            return {}
        return {"PATH": f"{Path(tool.path).parent}{os.pathsep}{path}"}


class ActionExecutor(Executor):
    """The executor of `action` jobs."""

    def __init__(
        self,
        settings: ChildSettings,
        secrets: SecretStore,
        sealer: Sealer,
        open_registry: OpenPuller,
        clock: Clock,
        clusters: ClusterTools | None = None,
        *,
        keep_free_bytes: int = KEEP_FREE_BYTES,
    ) -> None:
        self._settings = settings
        self._secrets = secrets
        self._sealer = sealer
        self._open_registry = open_registry
        self._clock = clock
        self._clusters = clusters
        self._keep_free_bytes = keep_free_bytes

    async def run(self, job: JobRun, log: LogWriter, stop: StopRequest) -> Outcome:
        """Run the steps and return the outcome, with secrets masked."""
        return await run_guarded(job, log, self._run(job, log, stop), classify=classify)

    async def _run(self, job: JobRun, log: LogWriter, stop: StopRequest) -> Outcome:
        spec = require_spec(job, ActionSpec)
        limits = JobLimits(spec.timeout_s, TIMEOUT_GRACE_S, self._keep_free_bytes)
        context = open_context(
            job, log, stop, clock=self._clock, children=self._settings, limits=limits
        )
        texts = [*spec.env.values(), *(text for step in spec.steps for text in step.env.values())]
        texts += list_texts(spec.cluster)
        filler = await gather_values(job, log, texts, self._secrets, self._sealer)
        async with self._open_cluster(context, spec, filler) as env:
            return await _Action(context, spec, filler, self._open_registry, env).run()

    @asynccontextmanager
    async def _open_cluster(
        self, context: JobContext, spec: ActionSpec, filler: Filler
    ) -> AsyncIterator[dict[str, str]]:
        """Yield the variables with which commands reach the cluster, and kubectl on their PATH."""
        if self._clusters is None or spec.kube_config == "none":
            context.log.system("no cluster is known to this action: KUBECONFIG is not set")
            yield {"NUON_KUBECONFIG_ENABLED": "false"}
            return
        required = spec.kube_config == "required"
        access = self._clusters.access
        async with access.open(context, spec.cluster, filler.fill, required=required) as env:
            has_cluster = "KUBECONFIG" in env
            path = await self._clusters.find_kubectl(context) if has_cluster else {}
            yield {**env, **path}


def _fill(filler: Filler, env: dict[str, str]) -> dict[str, str]:
    return {name: filler.fill(value) for name, value in env.items()}


def _build_argv(
    workspace: Workspace, number: int, step: ActionStep, folder: Path
) -> tuple[str, ...]:
    """Return the argv of a script or a command; a command is looked up in the source first."""
    if step.script is not None:
        script = workspace.script(number)
        text = step.script if step.script.startswith("#!") else f"#!/bin/sh\n{step.script}"
        workspace.write(script, text.encode(), mode=_EXECUTABLE)
        return (str(script),)
    first, *rest = step.argv or [""]
    own = folder / first
    with workspace.touch():
        inside = own.resolve().is_relative_to(folder.resolve())
        is_own = inside and own.is_file() and bool(own.stat().st_mode & _ANY_EXECUTES)
    return (str(own), *rest) if is_own else (first, *rest)
