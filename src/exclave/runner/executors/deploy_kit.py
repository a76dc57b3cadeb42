"""What executors that plan and apply share: their dependencies, and how their jobs begin."""

from collections.abc import Iterable
from dataclasses import dataclass

from exclave.base.clock import Clock
from exclave.base.ids import Randomness
from exclave.runner.jobs.artifacts import OpenPuller
from exclave.runner.jobs.context import TIMEOUT_GRACE_S, JobContext, JobLimits, open_context
from exclave.runner.jobs.environment import ChildSettings
from exclave.runner.jobs.executor import JobRun, StopRequest
from exclave.runner.jobs.placeholders import Filler, gather_values
from exclave.runner.jobs.workspace import KEEP_FREE_BYTES
from exclave.runner.kube.access.clusters import ConnectCluster, list_texts
from exclave.runner.kube.api.client import ClusterClient
from exclave.runner.kube.api.connection import Connection
from exclave.runner.kube.changes.state_session import StateSession
from exclave.runner.kube.pull_secrets import ReadPullLogin, read_no_login
from exclave.runner.logs.spool import LogWriter
from exclave.runner.secrets.sealing import Sealer
from exclave.runner.secrets.store import SecretStore
from exclave.runner.states.sealed_store import SealedStore
from exclave.runner.tools.finder import ToolFinder
from exclave.runner.tools.job_tools import find_job_tool
from exclave.wire.kubernetes import ClusterJob, HealthSpec
from exclave.wire.specs import TerraformSpec

DelayedSpec = ClusterJob | HealthSpec | TerraformSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class DeployKit:
    """The dependencies of an executor that plans and applies."""

    children: ChildSettings
    secrets: SecretStore
    sealer: Sealer
    finder: ToolFinder
    open_registry: OpenPuller
    clock: Clock
    randomness: Randomness
    timeout_grace_s: float = TIMEOUT_GRACE_S
    keep_free_bytes: int = KEEP_FREE_BYTES

    async def begin(
        self, job: JobRun, log: LogWriter, stop: StopRequest, spec: DelayedSpec
    ) -> JobContext:
        """Return the context of a job, after the delay before another attempt.

        The delay does not count towards the timeout.
        """
        limits = JobLimits(spec.timeout_s, self.timeout_grace_s, self.keep_free_bytes)
        context = open_context(
            job, log, stop, clock=self.clock, children=self.children, limits=limits
        )
        if spec.delay_s > 0:
            context.deadline += spec.delay_s
            log.system(f"waiting {spec.delay_s:g} s before the next attempt")
            await context.pause(spec.delay_s)
        return context

    async def fetch_values(self, context: JobContext, texts: Iterable[str]) -> Filler:
        """Fetch the values of all placeholders in the texts, and mask them even where short."""
        filler = await gather_values(context.job, context.log, texts, self.secrets, self.sealer)
        context.hidden = frozenset(secret.reveal() for secret in filler.secrets) - {""}
        return filler

    async def find_tool(self, context: JobContext, name: str, version: str = "") -> str:
        """Return the path of a program that the job needs."""
        return (await find_job_tool(self.finder, context, name, version)).path


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterKit(DeployKit):
    """The dependencies of an executor that deploys to clusters."""

    connect: ConnectCluster
    read_pull_login: ReadPullLogin = read_no_login

    async def open_cluster(
        self, context: JobContext, spec: ClusterJob | HealthSpec, texts: Iterable[str]
    ) -> tuple[Filler, Connection]:
        """Fetch the values of the texts and return them with the connection to the cluster."""
        filler = await self.fetch_values(context, [*texts, *list_texts(spec.cluster)])
        return filler, await self.connect(spec.cluster, filler.fill, context.job.identity)

    def open_state(
        self, context: JobContext, spec: ClusterJob | HealthSpec, client: ClusterClient
    ) -> StateSession:
        """Return the stored state of the part that a job deploys."""
        run = context.job
        store = SealedStore(
            spec.workspace, uplink=run.uplink, sealer=self.sealer, folder=run.folder
        )
        return StateSession(store, client, self.randomness, run.dispatch.execution_id)
