"""Executor of `helm` jobs: plans, applies, scans and removes releases of charts."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from exclave.base.clock import Clock
from exclave.base.errors import Problem
from exclave.base.ids import Randomness
from exclave.base.secrets import Secret
from exclave.runner.helm.apply import apply_release
from exclave.runner.helm.context import HelmContext
from exclave.runner.helm.packages import unpack_chart
from exclave.runner.helm.plan import plan_release
from exclave.runner.helm.scan import scan_release
from exclave.runner.helm.stored_state import StateSession
from exclave.runner.helm.teardown import apply_teardown, plan_teardown
from exclave.runner.jobs.artifacts import OpenPuller
from exclave.runner.jobs.context import TIMEOUT_GRACE_S, JobContext, JobLimits, open_context
from exclave.runner.jobs.environment import ChildSettings
from exclave.runner.jobs.executor import EndedRun, Executor, JobRun, StopRequest, run_guarded
from exclave.runner.jobs.placeholders import Filler, gather_values
from exclave.runner.jobs.workspace import KEEP_FREE_BYTES
from exclave.runner.kube.access.proxy import Change, ClusterProxy
from exclave.runner.kube.access.proxy_rules import Mode
from exclave.runner.kube.api.client import ClusterClient
from exclave.runner.kube.api.connection import Connection
from exclave.runner.kube.api.errors import classify
from exclave.runner.kube.api.objects import ObjectId
from exclave.runner.kube.manifests.job import ConnectCluster
from exclave.runner.logs.spool import LogWriter
from exclave.runner.outcomes import WorkFailed
from exclave.runner.secrets.sealing import Sealer
from exclave.runner.secrets.store import SecretStore
from exclave.runner.states.journal_file import JournalFile, send_regularly
from exclave.runner.states.rescued_states import settle_state
from exclave.runner.states.sealed_store import SealedStore
from exclave.runner.tools.finder import ToolFinder
from exclave.runner.tools.job_tools import find_job_tool
from exclave.wire.jobs import Reason
from exclave.wire.kubernetes import HelmSpec, InlineCluster
from exclave.wire.runner import Outcome


@dataclass(frozen=True, slots=True)
class HelmKit:
    """The dependencies of the executor."""

    children: ChildSettings
    secrets: SecretStore
    sealer: Sealer
    finder: ToolFinder
    open_registry: OpenPuller
    connect: ConnectCluster
    clock: Clock
    randomness: Randomness
    timeout_grace_s: float = TIMEOUT_GRACE_S
    keep_free_bytes: int = KEEP_FREE_BYTES


class HelmExecutor(Executor):
    """The executor of `helm` jobs."""

    def __init__(self, kit: HelmKit) -> None:
        self._kit = kit

    async def run(self, job: JobRun, log: LogWriter, stop: StopRequest) -> Outcome:
        """Plan or apply and return the outcome, with secrets masked."""
        return await run_guarded(job, log, self._run(job, log, stop), classify=classify)

    async def settle(self, ended: EndedRun) -> None:
        """Upload the journal and a state that was not stored, or keep the state for later."""
        await settle_state(ended)

    async def _run(self, job: JobRun, log: LogWriter, stop: StopRequest) -> Outcome:
        spec = job.dispatch.spec
        if not isinstance(spec, HelmSpec):
            raise WorkFailed(Reason.KIND_UNSUPPORTED, f"this is a `{spec.kind}` job")
        kit = self._kit
        limits = JobLimits(spec.timeout_s, kit.timeout_grace_s, kit.keep_free_bytes)
        context = open_context(
            job, log, stop, clock=kit.clock, children=kit.children, limits=limits
        )
        if spec.delay_s > 0:
            context.deadline += spec.delay_s
            log.system(f"waiting {spec.delay_s:g} s before the next attempt")
            await context.pause(spec.delay_s)
        texts = [*spec.values, *spec.sets.values(), spec.overrides]
        if isinstance(spec.cluster, InlineCluster):
            texts.append(spec.cluster.kubeconfig)
        filler = await gather_values(job, log, texts, kit.secrets, kit.sealer)
        context.hidden = frozenset(secret.reveal() for secret in filler.secrets) - {""}
        connection = await kit.connect(spec.cluster, filler.fill)
        if spec.operation == "plan":
            return await self._work(context, spec, filler, connection, None)
        async with _keep_journal(context, spec) as journal:
            return await self._work(context, spec, filler, connection, journal)

    async def _work(
        self,
        context: JobContext,
        spec: HelmSpec,
        filler: Filler,
        connection: Connection,
        journal: "_Journal | None",
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
                state=self._open_state(context, spec, client),
                sealer=kit.sealer,
                filler=filler,
                tool=await self._find_helm(context, spec),
                kubeconfig=proxy.write_kubeconfig(context.workspace, spec.namespace),
                opa=await self._find_opa(context, spec),
            )
            if journal is not None:
                apply = apply_teardown if spec.destroy else apply_release
                return await apply(job, journal.note_object)
            return await self._plan(job)

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
        return (await find_job_tool(self._kit.finder, context, "helm")).path

    async def _find_opa(self, context: JobContext, spec: HelmSpec) -> str:
        if not spec.policies or spec.operation != "plan":
            return ""
        return (await find_job_tool(self._kit.finder, context, "opa")).path

    def _open_state(
        self, context: JobContext, spec: HelmSpec, client: ClusterClient
    ) -> StateSession:
        store = SealedStore(
            spec.workspace,
            uplink=context.job.uplink,
            sealer=self._kit.sealer,
            folder=context.job.folder,
        )
        execution_id = context.job.dispatch.execution_id
        return StateSession(store, client, self._kit.randomness, execution_id)

    async def _fetch_chart(self, job: HelmContext) -> None:
        """Pull the chart and unpack it into the workspace."""
        artifact, run = job.spec.artifact, job.context.job
        name = f"{artifact.repository}@{artifact.digest}"
        package = run.folder / "chart.tgz"
        try:
            async with self._kit.open_registry(run.uplink) as registry:
                await registry.pull_layer(artifact.repository, artifact.digest, package)
        except Problem as problem:
            message = f"{name} cannot be pulled: {problem.message}"
            raise WorkFailed(Reason.ARTIFACT_UNAVAILABLE, message) from problem
        try:
            await asyncio.to_thread(_unpack, job, package)
        except (Problem, WorkFailed) as problem:
            raise WorkFailed(Reason.ARTIFACT_TAMPERED, f"{name}: {problem.message}") from problem
        finally:
            package.unlink(missing_ok=True)


def _unpack(job: HelmContext, package: Path) -> None:
    workspace = job.context.workspace
    target = workspace.work / "artifact"
    with workspace.touch():
        unpack_chart(package, target).rename(job.chart)


class _Journal(JournalFile):
    """The journal of an apply: every change of the cluster, before it is sent."""

    def note_request(self, change: Change) -> None:
        """Write down a request of helm that changes something, and its answer."""
        status = None if change.status is None else str(change.status)
        self.write(
            {"type": "request", "method": change.method, "path": change.path, "status": status}
        )
        self.events += 1

    def note_object(self, action: str, object_id: ObjectId) -> None:
        """Write down a change that the runner makes itself."""
        self.write({"type": "apply_start", "addr": object_id.address, "action": action})
        self.events += 1


@asynccontextmanager
async def _keep_journal(context: JobContext, spec: HelmSpec) -> AsyncIterator[_Journal]:
    """Keep a journal and upload it regularly while the block lasts."""
    job = context.job
    journal = _Journal(job.folder, spec.workspace, context.mask)
    sending = asyncio.create_task(send_regularly(job.folder, job.uplink, context.clock))
    try:
        yield journal
        journal.end()
    finally:
        journal.close()
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
