"""Executor of `health` jobs: checks whether what was deployed still works; changes nothing."""

from collections.abc import Sequence

from exclave.runner.executors.deploy_kit import ClusterKit
from exclave.runner.executors.pod_commands import PodCommands
from exclave.runner.jobs.context import JobContext
from exclave.runner.jobs.executor import Executor, JobRun, StopRequest, require_spec, run_guarded
from exclave.runner.kube.api.client import ClusterClient
from exclave.runner.kube.api.errors import classify
from exclave.runner.kube.api.objects import ObjectId
from exclave.runner.kube.changes.plan_file import read_plan_file
from exclave.runner.kube.changes.state import PlanMark
from exclave.runner.kube.health.watching import HealthWatch, Verdict, list_watched
from exclave.runner.logs.spool import LogWriter
from exclave.runner.outcomes import WorkFailed
from exclave.runner.plans.sealed_plans import open_plan
from exclave.wire.jobs import OutcomeState, Reason
from exclave.wire.kubernetes import HealthSpec
from exclave.wire.runner import Outcome


class HealthExecutor(Executor):
    """The executor of `health` jobs."""

    def __init__(self, kit: ClusterKit) -> None:
        self._kit = kit

    async def run(self, job: JobRun, log: LogWriter, stop: StopRequest) -> Outcome:
        """Check a part and return its health; the job succeeds even if the part is degraded."""
        return await run_guarded(job, log, self._run(job, log, stop), classify=classify)

    async def _run(self, job: JobRun, log: LogWriter, stop: StopRequest) -> Outcome:
        spec = require_spec(job, HealthSpec)
        context = await self._kit.begin(job, log, stop, spec)
        verdict = await context.guard(self._check(context, spec), name="the health check")
        log.system(f"{spec.workspace} is {verdict.state}")
        health = {"state": verdict.state, "reason": context.mask(verdict.reason)}
        return Outcome(
            state=OutcomeState.SUCCEEDED,
            reason=Reason.COMPLETED,
            exit_code=0,
            outputs={"health": health},
        )

    async def _check(self, context: JobContext, spec: HealthSpec) -> Verdict:
        kit = self._kit
        _, connection = await kit.open_cluster(context, spec, ())
        pods = PodCommands(context, connection, kit.finder, kit.randomness)
        rules, say = spec.rules, context.log.system
        async with ClusterClient(connection, kit.clock, kit.randomness, read_only=True) as client:
            state = await kit.open_state(context, spec, client).read("manifest", spec.namespace)
            objects = await self._list_objects(context, spec, state.plan)
            return await HealthWatch(
                client, kit.clock, rules, objects, pods.run, say
            ).check_past_window()

    async def _list_objects(
        self, context: JobContext, spec: HealthSpec, mark: PlanMark | None
    ) -> Sequence[ObjectId]:
        """Return the objects of the plan that is deployed."""
        if mark is None or not mark.execution:
            raise WorkFailed(Reason.PLAN_MISSING, "nothing is deployed that could be healthy")
        uplink, sealer = context.job.uplink, self._kit.sealer
        data = await open_plan(uplink, sealer, spec.workspace, mark.execution)
        try:
            return list_watched(read_plan_file(data).objects)
        except ValueError as error:
            message = f"the plan cannot be read: {error}"
            raise WorkFailed(Reason.PLAN_MISSING, message) from error
