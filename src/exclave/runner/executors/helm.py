"""Executor of `helm` jobs: plans, applies, scans and removes releases of charts."""

import asyncio
from pathlib import Path

from exclave.base.errors import Problem
from exclave.base.secrets import Secret
from exclave.runner.executors.deploy_kit import ClusterKit
from exclave.runner.executors.pod_commands import PodCommands
from exclave.runner.helm.apply import apply_release
from exclave.runner.helm.context import HelmContext
from exclave.runner.helm.packages import unpack_chart
from exclave.runner.helm.plan import plan_release
from exclave.runner.helm.scan import scan_release
from exclave.runner.helm.teardown import apply_teardown, plan_teardown
from exclave.runner.jobs.artifacts import pull_file
from exclave.runner.jobs.context import JobContext
from exclave.runner.jobs.executor import (
    EndedRun,
    Executor,
    JobRun,
    StopRequest,
    require_spec,
    run_guarded,
)
from exclave.runner.jobs.placeholders import Filler
from exclave.runner.kube.access.journal import ClusterJournal
from exclave.runner.kube.access.proxy import ClusterProxy
from exclave.runner.kube.access.proxy_rules import Mode
from exclave.runner.kube.api.client import ClusterClient
from exclave.runner.kube.api.connection import Connection
from exclave.runner.kube.api.errors import classify
from exclave.runner.logs.spool import LogWriter
from exclave.runner.outcomes import WorkFailed
from exclave.runner.states.journal_file import keep_journal
from exclave.runner.states.rescued_states import settle_state
from exclave.wire.jobs import Reason
from exclave.wire.kubernetes import HelmSpec
from exclave.wire.runner import Outcome


class HelmExecutor(Executor):
    """The executor of `helm` jobs."""

    def __init__(self, kit: ClusterKit) -> None:
        self._kit = kit

    async def run(self, job: JobRun, log: LogWriter, stop: StopRequest) -> Outcome:
        """Plan or apply and return the outcome, with secrets masked."""
        return await run_guarded(job, log, self._run(job, log, stop), classify=classify)

    async def settle(self, ended: EndedRun) -> None:
        """Upload the journal and a state that was not stored, or keep the state for later."""
        await settle_state(ended)

    async def _run(self, job: JobRun, log: LogWriter, stop: StopRequest) -> Outcome:
        spec = require_spec(job, HelmSpec)
        context = await self._kit.begin(job, log, stop, spec)
        texts = [*spec.values, *spec.sets.values(), spec.overrides]
        filler, connection = await self._kit.open_cluster(context, spec, texts)
        if spec.operation == "plan":
            return await self._work(context, spec, filler, connection, None)
        async with keep_journal(context, spec.workspace, ClusterJournal) as journal:
            return await self._work(context, spec, filler, connection, journal)

    async def _work(
        self,
        context: JobContext,
        spec: HelmSpec,
        filler: Filler,
        connection: Connection,
        journal: ClusterJournal | None,
    ) -> Outcome:
        kit = self._kit
        is_plan = journal is None
        client = ClusterClient(connection, kit.clock, kit.randomness, read_only=is_plan)
        mode = Mode.READ if is_plan else Mode.WRITE
        note = None if journal is None else journal.note_request
        proxy = ClusterProxy(connection, kit.randomness, mode=mode, note=note)
        async with client, proxy:
            context.log.hide(Secret(text) for text in proxy.secrets)
            job = HelmContext(
                context=context,
                spec=spec,
                client=client,
                state=kit.open_state(context, spec, client),
                sealer=kit.sealer,
                filler=filler,
                tool=await self._find_helm(context, spec),
                kubeconfig=proxy.write_kubeconfig(context.workspace, spec.namespace),
                run_in_pod=PodCommands(context, connection, kit.finder, kit.randomness).run,
                opa=await kit.find_tool(context, "opa") if is_plan and spec.policies else "",
                read_pull_login=kit.read_pull_login,
            )
            if journal is not None:
                apply = apply_teardown if spec.destroy else apply_release
                return await apply(job, journal.note_object)
            return await context.guard(self._plan(job), name="the plan")

    async def _plan(self, job: HelmContext) -> Outcome:
        if job.spec.scan:
            return await scan_release(job)
        if job.spec.destroy:
            return await plan_teardown(job)
        if job.spec.rollback_to is None:
            await self._fetch_chart(job)
        return await plan_release(job)

    async def _find_helm(self, context: JobContext, spec: HelmSpec) -> str:
        """Return the program; a scan and the plan of a teardown start none."""
        needs_none = spec.operation == "plan" and (spec.scan or spec.destroy)
        if needs_none:
            return ""
        return await self._kit.find_tool(context, "helm")

    async def _fetch_chart(self, job: HelmContext) -> None:
        """Pull the chart and unpack it into the workspace."""
        artifact, run = job.spec.artifact, job.context.job
        package = run.folder / "chart.tgz"
        await pull_file(self._kit.open_registry, run, artifact, package)
        try:
            await asyncio.to_thread(_unpack, job, package)
        except (Problem, WorkFailed) as problem:
            message = f"{artifact.repository}@{artifact.digest}: {problem.message}"
            raise WorkFailed(Reason.ARTIFACT_TAMPERED, message) from problem
        finally:
            package.unlink(missing_ok=True)


def _unpack(job: HelmContext, package: Path) -> None:
    workspace = job.context.workspace
    target = workspace.work / "artifact"
    with workspace.touch():
        unpack_chart(package, target).rename(job.chart)
