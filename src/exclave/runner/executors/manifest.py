"""Executor of `manifest` jobs: plans, applies, scans and tears down Kubernetes objects."""

from dataclasses import dataclass
from pathlib import Path

from exclave.base.clock import Clock
from exclave.base.ids import Randomness
from exclave.runner.jobs.artifacts import OpenPuller, pull_file
from exclave.runner.jobs.context import TIMEOUT_GRACE_S, JobContext, JobLimits, open_context
from exclave.runner.jobs.environment import ChildSettings
from exclave.runner.jobs.executor import EndedRun, Executor, JobRun, StopRequest, run_guarded
from exclave.runner.jobs.placeholders import Filler, gather_values
from exclave.runner.jobs.workspace import KEEP_FREE_BYTES
from exclave.runner.kube.api.client import ClusterClient
from exclave.runner.kube.api.errors import classify
from exclave.runner.kube.changes.state import KubeState
from exclave.runner.kube.manifests.applying import apply_plan
from exclave.runner.kube.manifests.job import ConnectCluster, ManifestJob
from exclave.runner.kube.manifests.planning import Planned, finish_plan, plan_objects
from exclave.runner.kube.manifests.sources import (
    PlanSource,
    hide_secrets,
    read_plan,
    read_source,
    reopen_plan,
)
from exclave.runner.kube.manifests.teardown import apply_teardown, plan_teardown
from exclave.runner.logs.spool import LogWriter
from exclave.runner.outcomes import WorkFailed
from exclave.runner.plans.sealed_plans import fetch_plan
from exclave.runner.processes.child import Command
from exclave.runner.secrets.sealing import Sealer
from exclave.runner.secrets.store import SecretStore
from exclave.runner.states.rescued_states import settle_state
from exclave.runner.states.sealed_store import SealedStore
from exclave.runner.tools.finder import ToolFinder
from exclave.wire.jobs import Reason
from exclave.wire.kubernetes import InlineCluster, ManifestSpec
from exclave.wire.runner import Outcome


@dataclass(frozen=True, slots=True)
class ManifestKit:
    """The dependencies of the executor."""

    children: ChildSettings
    secrets: SecretStore
    sealer: Sealer
    connect: ConnectCluster
    open_registry: OpenPuller
    finder: ToolFinder
    clock: Clock
    randomness: Randomness
    timeout_grace_s: float = TIMEOUT_GRACE_S
    keep_free_bytes: int = KEEP_FREE_BYTES


class ManifestExecutor(Executor):
    """The executor of `manifest` jobs. Only the runner itself talks to the cluster."""

    def __init__(self, kit: ManifestKit) -> None:
        self._kit = kit

    async def run(self, job: JobRun, log: LogWriter, stop: StopRequest) -> Outcome:
        """Plan or apply and return the outcome, with secrets masked."""
        return await run_guarded(job, log, self._run(job, log, stop), classify=classify)

    async def settle(self, ended: EndedRun) -> None:
        """Upload the journal and a state that was not stored, or keep the state for later."""
        await settle_state(ended)

    async def _run(self, job: JobRun, log: LogWriter, stop: StopRequest) -> Outcome:
        spec = job.dispatch.spec
        if not isinstance(spec, ManifestSpec):
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
        if spec.delay_s > 0:
            log.system(f"waiting {spec.delay_s:g} s before the next attempt")
            await context.pause(spec.delay_s)
        return await self._connect_and_run(context, spec)

    async def _connect_and_run(self, context: JobContext, spec: ManifestSpec) -> Outcome:
        kit, run = self._kit, context.job
        text = await self._read_text(context, spec)
        inline = spec.cluster.kubeconfig if isinstance(spec.cluster, InlineCluster) else ""
        filler = await gather_values(run, context.log, (text, inline), kit.secrets, kit.sealer)
        context.hidden = frozenset(secret.reveal() for secret in filler.secrets) - {""}
        connection = await kit.connect(spec.cluster, filler.fill)
        store = SealedStore(spec.workspace, uplink=run.uplink, sealer=kit.sealer, folder=run.folder)
        is_plan = spec.operation == "plan"
        client = ClusterClient(connection, kit.clock, kit.randomness, read_only=is_plan)
        async with client:
            job = ManifestJob(context, spec, client, store, kit.sealer, kit.randomness)
            if is_plan:
                planned = await context.guard(_plan(job, text, filler), name="the plan")
                return await finish_plan(job, planned, await self._find_opa(job))
            return await context.guard(self._apply(job), name="the apply")

    async def _find_opa(self, job: ManifestJob) -> str:
        """Return the path of `opa` if the job has policies."""
        if not job.spec.policies:
            return ""
        context = job.context

        async def run(command: Command, seconds: float) -> tuple[int, str]:
            del seconds  # the job's own deadline is the limit
            printed = await context.capture(command)
            return printed.code, printed.stdout or printed.stderr

        tool = await self._kit.finder.find("opa", "", env=context.build_env(), run=run)
        context.log.system(tool.note)
        return tool.path

    async def _apply(self, job: ManifestJob) -> Outcome:
        data = await fetch_plan(
            job.context.job, self._kit.sealer, job.spec.workspace, job.spec.plan
        )
        plan = read_plan(data)
        hide_secrets(job, [wanted.value for wanted in plan.objects])
        if plan.operation == "teardown":
            return await apply_teardown(job, plan)
        return await apply_plan(job, plan)

    async def _read_text(self, context: JobContext, spec: ManifestSpec) -> str:
        if spec.artifact is None:
            return spec.manifest or ""
        target = Path(context.job.folder) / "manifest.yaml"
        await pull_file(self._kit.open_registry, context.job, spec.artifact, target)
        return target.read_text()


async def _plan(job: ManifestJob, text: str, filler: Filler) -> Planned:
    state = await job.open_state()
    if job.spec.destroy:
        return await plan_teardown(job, state)
    return await plan_objects(job, await _choose_source(job, state, text, filler), state)


async def _choose_source(
    job: ManifestJob, state: KubeState, text: str, filler: Filler
) -> PlanSource:
    """Return what is wanted: the text, or for scans and rollbacks the objects of a plan."""
    spec = job.spec
    if spec.rollback_to is not None:
        ref = spec.rollback_to
        plan = await reopen_plan(job, ref.execution_id, ref.digest)
    elif spec.scan and state.plan is not None:
        plan = await reopen_plan(job, state.plan.execution, state.plan.digest)
    elif spec.scan:
        return PlanSource("", ())
    else:
        return await read_source(job, text, filler)
    return PlanSource(plan.source, plan.objects)
