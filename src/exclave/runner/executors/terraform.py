"""Executor of `terraform` jobs: plans and applies modules with Terraform or OpenTofu."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from exclave.base.secrets import Secret
from exclave.runner.executors.deploy_kit import DeployKit
from exclave.runner.jobs.artifacts import fetch_artifact
from exclave.runner.jobs.executor import (
    EndedRun,
    Executor,
    JobRun,
    StopRequest,
    require_spec,
    run_guarded,
)
from exclave.runner.jobs.placeholders import Filler
from exclave.runner.jobs.workspace import find_short_tmp
from exclave.runner.logs.spool import LogWriter
from exclave.runner.outcomes import WorkFailed
from exclave.runner.states.rescued_states import settle_state
from exclave.runner.terraform.apply import apply
from exclave.runner.terraform.context import TerraformContext
from exclave.runner.terraform.errored_state import seal_errored
from exclave.runner.terraform.module import (
    POLICY_DIR,
    TerraformSettings,
    build_tool_env,
    choose_env,
    choose_tool,
    make_policy_folder,
    write_cli_config,
    write_override,
    write_variables,
)
from exclave.runner.terraform.plan import plan
from exclave.runner.terraform.plugin_cache import PluginCache
from exclave.runner.terraform.state_backend import StateProxy
from exclave.runner.terraform.state_store import StateStore
from exclave.wire.jobs import Reason
from exclave.wire.runner import Outcome
from exclave.wire.specs import TerraformSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class TerraformKit(DeployKit):
    """The dependencies of the executor."""

    settings: TerraformSettings


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
        spec = require_spec(job, TerraformSpec)
        context = await self._kit.begin(job, log, stop, spec)
        sealer, workspace = self._kit.sealer, spec.workspace
        store = StateStore(workspace, uplink=job.uplink, sealer=sealer, folder=job.folder, log=log)
        tf = TerraformContext(context, spec, store, self._plugins)
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
        await fetch_artifact(
            self._kit.open_registry, context.job, context.workspace, spec.artifact, tf.module
        )
        texts = (*spec.vars.values(), *spec.var_files, *spec.env.values())
        filler = await self._kit.fetch_values(context, texts)
        with context.workspace.touch():
            write_override(tf.module)
            if make_policy_folder(spec, tf.module):
                context.log.system(
                    f"`{POLICY_DIR}` is an empty folder: the app's policies are planned and applied"
                    " after the sandbox"
                )
        with find_short_tmp(context.workspace) as tmp:
            return await self._plan_or_apply(tf, filler, tmp)

    async def _plan_or_apply(self, tf: TerraformContext, filler: Filler, tmp: Path) -> Outcome:
        spec, workspace = tf.spec, tf.context.workspace
        async with StateProxy(tf.store, self._kit.randomness) as proxy:
            tf.context.log.hide(Secret(text) for text in proxy.secrets)
            tf.env = self._build_env(tf, filler, {**proxy.env, "TMPDIR": str(tmp)})
            tool, version = choose_tool(spec, self._kit.settings)
            tf.tool = await self._kit.find_tool(tf.context, tool, version)
            if spec.operation == "apply":
                return await apply(tf, self._kit.sealer)
            opa = await self._kit.find_tool(tf.context, "opa") if spec.policies else ""
            with workspace.touch():
                files = write_variables(spec, filler, tf.module, workspace.folder / "vars")
            return await plan(tf, self._kit.sealer, opa, files)

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
