"""Executor of `terraform` jobs: plans and applies modules with Terraform or OpenTofu."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from exclave.base.clock import Clock
from exclave.base.ids import Randomness
from exclave.base.secrets import Secret
from exclave.runner.jobs.artifacts import OpenPuller, fetch_artifact
from exclave.runner.jobs.context import TIMEOUT_GRACE_S, JobLimits, open_context
from exclave.runner.jobs.environment import ChildSettings
from exclave.runner.jobs.executor import EndedRun, Executor, JobRun, StopRequest, run_guarded
from exclave.runner.jobs.placeholders import Filler, gather_values
from exclave.runner.jobs.workspace import KEEP_FREE_BYTES, find_short_tmp
from exclave.runner.logs.spool import LogWriter
from exclave.runner.outcomes import WorkFailed
from exclave.runner.secrets.sealing import Sealer
from exclave.runner.secrets.store import SecretStore
from exclave.runner.states.rescued_states import settle_state
from exclave.runner.terraform.apply import apply
from exclave.runner.terraform.errored_state import seal_errored
from exclave.runner.terraform.module import (
    TerraformSettings,
    build_tool_env,
    choose_env,
    choose_tool,
    write_cli_config,
    write_override,
    write_variables,
)
from exclave.runner.terraform.plan import plan
from exclave.runner.terraform.plugin_cache import PluginCache
from exclave.runner.terraform.state_backend import StateProxy
from exclave.runner.terraform.state_store import StateStore
from exclave.runner.terraform.tool_context import TerraformContext
from exclave.runner.tools.finder import ToolFinder
from exclave.runner.tools.job_tools import find_job_tool
from exclave.wire.jobs import Reason
from exclave.wire.runner import Outcome
from exclave.wire.specs import TerraformSpec


@dataclass(frozen=True, slots=True)
class TerraformKit:
    """The dependencies of the executor."""

    children: ChildSettings
    settings: TerraformSettings
    secrets: SecretStore
    sealer: Sealer
    finder: ToolFinder
    open_registry: OpenPuller
    clock: Clock
    randomness: Randomness
    timeout_grace_s: float = TIMEOUT_GRACE_S
    keep_free_bytes: int = KEEP_FREE_BYTES


class TerraformExecutor(Executor):
    """The executor of `terraform` jobs."""

    def __init__(self, kit: TerraformKit) -> None:
        self._kit = kit
        self._plugins = PluginCache(kit.settings.plugin_cache, kit.clock)

    async def run(self, job: JobRun, log: LogWriter, stop: StopRequest) -> Outcome:
        """Plan or apply and return the outcome, with secrets masked."""
        return await run_guarded(job, log, self._run(job, log, stop))

    async def settle(self, ended: EndedRun) -> None:
        """Upload the journal and a state that was not stored, or keep the state for later."""
        seal_errored(ended.folder, ended.uplink, self._kit.sealer, ended.mask)
        await settle_state(ended)

    async def _run(self, job: JobRun, log: LogWriter, stop: StopRequest) -> Outcome:
        tf = self._open_context(job, log, stop)
        try:
            return await self._fetch_and_run(tf)
        except WorkFailed as failed:
            broken = tf.store.sealed.broken
            if broken is None:
                raise
            message = f"the stored state cannot be opened: {broken.message}. {broken.advice}"
            raise WorkFailed(Reason.STATE_REFUSED, message) from failed

    async def _fetch_and_run(self, tf: TerraformContext) -> Outcome:
        spec, context = tf.spec, tf.context
        if spec.delay_s > 0:
            context.log.system(f"waiting {spec.delay_s:g} s before the next attempt")
            await context.pause(spec.delay_s)
        await fetch_artifact(
            self._kit.open_registry, context.job, context.workspace, spec.artifact, tf.module
        )
        texts = (*spec.vars.values(), *spec.var_files, *spec.env.values())
        filler = await gather_values(
            context.job, context.log, texts, self._kit.secrets, self._kit.sealer
        )
        context.hidden = frozenset(secret.reveal() for secret in filler.secrets) - {""}
        with context.workspace.touch():
            write_override(tf.module)
        with find_short_tmp(context.workspace) as tmp:
            return await self._plan_or_apply(tf, filler, tmp)

    async def _plan_or_apply(self, tf: TerraformContext, filler: Filler, tmp: Path) -> Outcome:
        spec, workspace = tf.spec, tf.context.workspace
        async with StateProxy(tf.store, self._kit.randomness) as proxy:
            tf.context.log.hide(Secret(text) for text in proxy.secrets)
            tf.env = self._build_env(tf, filler, {**proxy.env, "TMPDIR": str(tmp)})
            tf.tool = await self._find(tf, *choose_tool(spec, self._kit.settings))
            if spec.operation == "apply":
                return await apply(tf, self._kit.sealer)
            opa = await self._find(tf, "opa", "") if spec.policies else ""
            with workspace.touch():
                files = write_variables(spec, filler, tf.module, workspace.folder / "vars")
            return await plan(tf, self._kit.sealer, opa, files)

    def _open_context(self, job: JobRun, log: LogWriter, stop: StopRequest) -> TerraformContext:
        spec = job.dispatch.spec
        if not isinstance(spec, TerraformSpec):
            raise WorkFailed(Reason.KIND_UNSUPPORTED, f"this is a `{spec.kind}` job")
        kit = self._kit
        context = open_context(
            job,
            log,
            stop,
            clock=kit.clock,
            children=kit.children,
            limits=JobLimits(spec.timeout_s, kit.timeout_grace_s, kit.keep_free_bytes),
        )
        context.deadline += spec.delay_s
        store = StateStore(
            spec.workspace, uplink=job.uplink, sealer=kit.sealer, folder=job.folder, log=log
        )
        return TerraformContext(context, spec, store, self._plugins)

    def _build_env(
        self, tf: TerraformContext, filler: Filler, ours: Mapping[str, str]
    ) -> dict[str, str]:
        context = tf.context
        rc = context.workspace.folder / "terraform.rc"
        with context.workspace.touch():
            write_cli_config(rc, self._kit.settings)
        chosen, dropped = choose_env(tf.spec, filler)
        for name in dropped:
            context.log.system(
                f"warning: `{name}` is set by the runner; the job's value is not used"
            )
        return context.build_env(chosen) | dict(build_tool_env(rc)) | dict(ours)

    async def _find(self, tf: TerraformContext, name: str, version: str) -> str:
        return (await find_job_tool(self._kit.finder, tf.context, name, version)).path
