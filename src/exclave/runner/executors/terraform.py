"""Plans and applies Terraform modules with the tool that the app asks for."""

import errno
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from exclave.base.clock import Clock
from exclave.base.errors import Problem
from exclave.base.ids import Randomness
from exclave.base.logs import Log
from exclave.base.secrets import Secret
from exclave.client.problems import Unreachable
from exclave.runner.control_plane.access_token import IdentityRefused
from exclave.runner.jobs.artifacts import OpenPuller, fetch_artifact
from exclave.runner.jobs.environment import ChildSettings, build_env
from exclave.runner.jobs.executor import MESSAGE_CHARS, Stop, Work, WorkFailed, fail
from exclave.runner.jobs.placeholders import Filler, gather_values
from exclave.runner.jobs.workspace import KEEP_FREE_BYTES, find_short_tmp, prepare_workspace
from exclave.runner.logs.spool import LogWriter
from exclave.runner.processes.child import Command
from exclave.runner.secrets.sealing import Sealer
from exclave.runner.secrets.store import SecretStore
from exclave.runner.terraform.apply import apply
from exclave.runner.terraform.module import (
    TerraformSettings,
    choose_env,
    choose_tool,
    tell_env,
    write_cli_config,
    write_override,
    write_variables,
)
from exclave.runner.terraform.plan import plan
from exclave.runner.terraform.plugin_cache import PluginCache
from exclave.runner.terraform.state_backend import StateProxy
from exclave.runner.terraform.state_store import StateStore
from exclave.runner.terraform.tool_context import Halted, Site
from exclave.runner.tools.finder import Tool, ToolFinder
from exclave.wire.jobs import Reason
from exclave.wire.runner import Outcome
from exclave.wire.specs import TerraformSpec

_log = Log("runner.terraform")


@dataclass(frozen=True, slots=True)
class TerraformKit:
    """What the executor works with."""

    children: ChildSettings
    settings: TerraformSettings
    secrets: SecretStore
    sealer: Sealer
    finder: ToolFinder
    open_registry: OpenPuller
    clock: Clock
    randomness: Randomness
    timeout_grace_s: float = 60.0
    keep_free_bytes: int = KEEP_FREE_BYTES


class TerraformExecutor:
    """The executor of `terraform` jobs."""

    def __init__(self, kit: TerraformKit) -> None:
        self._kit = kit
        self._plugins = PluginCache(kit.settings.plugin_cache, kit.clock)

    async def run(self, work: Work, log: LogWriter, stop: Stop) -> Outcome:
        """Plan or apply, and tell how it ended; texts that leave the runner are masked."""
        try:
            outcome = await self._run(work, log, stop)
        except Halted as halted:
            outcome = halted.outcome
        except WorkFailed as failed:
            outcome = failed.outcome()
        except IdentityRefused:
            raise
        except Problem as problem:
            reason = Reason.NETWORK if isinstance(problem, Unreachable) else Reason.RUNNER_ERROR
            outcome = fail(reason, f"{problem.message}. {problem.advice}")
        except OSError as error:
            _log.error("terraform_failed", exc=error, execution=work.dispatch.execution_id)
            full = error.errno in {errno.ENOSPC, errno.EDQUOT}
            message = f"the runner could not prepare the work: {error.strerror}"
            outcome = fail(Reason.DISK_FULL if full else Reason.RUNNER_ERROR, message)
        if outcome.message:
            log.system(outcome.message)
        return outcome.model_copy(update={"message": log.mask(outcome.message)[:MESSAGE_CHARS]})

    async def _run(self, work: Work, log: LogWriter, stop: Stop) -> Outcome:
        site = self._open_site(work, log, stop)
        try:
            return await self._do(site)
        except WorkFailed as failed:
            broken = site.store.broken
            if broken is None:
                raise
            message = f"the stored state cannot be opened: {broken.message}. {broken.advice}"
            raise WorkFailed(Reason.STATE_REFUSED, message) from failed

    async def _do(self, site: Site) -> Outcome:
        spec, work, log = site.spec, site.work, site.log
        if spec.delay_s > 0:
            await site.wait(spec.delay_s)
        await fetch_artifact(
            self._kit.open_registry, work, site.workspace, spec.artifact, site.module
        )
        texts = (*spec.vars.values(), *spec.var_files, *spec.env.values())
        filler = await gather_values(work, log, texts, self._kit.secrets, self._kit.sealer)
        site.hidden = frozenset(one.reveal() for one in filler.secrets) - {""}
        with site.workspace.touch():
            write_override(site.module)
        with find_short_tmp(site.workspace) as tmp:
            return await self._do_in(site, filler, tmp)

    async def _do_in(self, site: Site, filler: Filler, tmp: Path) -> Outcome:
        spec, log = site.spec, site.log
        async with StateProxy(site.store, self._kit.randomness) as proxy:
            log.hide(Secret(one) for one in proxy.secrets)
            site.env = self._build_env(site, filler, {**proxy.env, "TMPDIR": str(tmp)})
            site.tool = (await self._find(site, *choose_tool(spec, self._kit.settings))).path
            if spec.operation == "apply":
                return await apply(site, self._kit.sealer)
            opa = (await self._find(site, "opa", "")).path if spec.policies else ""
            with site.workspace.touch():
                files = write_variables(spec, filler, site.module, site.workspace.folder / "vars")
            return await plan(site, self._kit.sealer, opa, files)

    def _open_site(self, work: Work, log: LogWriter, stop: Stop) -> Site:
        spec = work.dispatch.spec
        if not isinstance(spec, TerraformSpec):
            raise WorkFailed(Reason.KIND_UNSUPPORTED, f"this is a `{spec.kind}` job")
        kit = self._kit
        workspace = prepare_workspace(
            work.folder, work.cell.user, keep_free_bytes=kit.keep_free_bytes
        )
        store = StateStore(
            spec.workspace, uplink=work.uplink, sealer=kit.sealer, folder=work.folder, log=log
        )
        deadline = kit.clock.monotonic() + spec.delay_s + spec.timeout_s
        return Site(
            work=work,
            spec=spec,
            log=log,
            stop=stop,
            clock=kit.clock,
            workspace=workspace,
            store=store,
            deadline=deadline,
            grace_s=kit.timeout_grace_s,
            plugins=self._plugins,
        )

    def _build_env(self, site: Site, filler: Filler, ours: Mapping[str, str]) -> dict[str, str]:
        rc = site.workspace.folder / "terraform.rc"
        with site.workspace.touch():
            write_cli_config(rc, self._kit.settings)
        chosen, dropped = choose_env(site.spec, filler)
        for name in dropped:
            site.log.system(f"warning: `{name}` is set by the runner; the job's value is not used")
        env = build_env(self._kit.children, site.workspace, chosen)
        return env | dict(tell_env(rc)) | dict(ours)

    async def _find(self, site: Site, name: str, version: str) -> Tool:
        async def run(command: Command, seconds: float) -> tuple[int, str]:
            del seconds  # the job's own deadline is the limit
            code, out, err = await site.capture(
                command.argv[0], command.argv, env=command.env, cwd=command.cwd
            )
            return code, out or err

        base = build_env(self._kit.children, site.workspace)
        tool = await self._kit.finder.find(name, version, env=base, run=run)
        site.log.system(tool.note)
        return tool
