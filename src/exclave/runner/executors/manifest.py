"""Executor of `manifest` jobs: plans, applies, scans and tears down Kubernetes objects."""

from pathlib import Path

from exclave.runner.executors.deploy_kit import ClusterKit
from exclave.runner.executors.pod_commands import PodCommands
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
from exclave.runner.kube.api.client import ClusterClient
from exclave.runner.kube.api.errors import classify
from exclave.runner.kube.changes.state import KubeState
from exclave.runner.kube.manifests.apply import apply_plan
from exclave.runner.kube.manifests.context import ManifestContext
from exclave.runner.kube.manifests.plan import Planned, finish_plan, plan_objects
from exclave.runner.kube.manifests.sources import (
    PlanSource,
    hide_secrets,
    read_plan,
    read_source,
    reopen_plan,
)
from exclave.runner.kube.manifests.teardown import apply_teardown, plan_teardown
from exclave.runner.logs.spool import LogWriter
from exclave.runner.plans.sealed_plans import fetch_plan
from exclave.runner.states.rescued_states import settle_state
from exclave.wire.kubernetes import ManifestSpec
from exclave.wire.runner import Outcome


class ManifestExecutor(Executor):
    """The executor of `manifest` jobs. Only the runner itself talks to the cluster."""

    def __init__(self, kit: ClusterKit) -> None:
        self._kit = kit

    async def run(self, job: JobRun, log: LogWriter, stop: StopRequest) -> Outcome:
        """Plan or apply and return the outcome, with secrets masked."""
        return await run_guarded(job, log, self._run(job, log, stop), classify=classify)

    async def settle(self, ended: EndedRun) -> None:
        """Upload the journal and a state that was not stored, or keep the state for later."""
        await settle_state(ended)

    async def _run(self, job: JobRun, log: LogWriter, stop: StopRequest) -> Outcome:
        spec = require_spec(job, ManifestSpec)
        kit = self._kit
        context = await kit.begin(job, log, stop, spec)
        text = await self._read_text(context, spec)
        filler, connection = await kit.open_cluster(context, spec, [text])
        is_plan = spec.operation == "plan"
        client = ClusterClient(connection, kit.clock, kit.randomness, read_only=is_plan)
        async with client:
            state = kit.open_state(context, spec, client)
            pods = PodCommands(context, connection, kit.finder, kit.randomness)
            manifest = ManifestContext(
                context, spec, client, state, kit.sealer, pods.run, kit.read_pull_login
            )
            if is_plan:
                planned = await context.guard(_plan(manifest, text, filler), name="the plan")
                opa = await kit.find_tool(context, "opa") if spec.policies else ""
                return await finish_plan(manifest, planned, opa)
            return await context.guard(self._apply(manifest), name="the apply")

    async def _apply(self, job: ManifestContext) -> Outcome:
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


async def _plan(job: ManifestContext, text: str, filler: Filler) -> Planned:
    state = await job.read_state()
    if job.spec.destroy:
        return await plan_teardown(job, state)
    return await plan_objects(job, await _choose_source(job, state, text, filler), state)


async def _choose_source(
    job: ManifestContext, state: KubeState, text: str, filler: Filler
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
