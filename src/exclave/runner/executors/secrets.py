"""Executor of `secrets` jobs: reports which secrets exist, makes missing ones, fills clusters."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from exclave.base.clock import Clock
from exclave.base.ids import Randomness
from exclave.base.secrets import Secret
from exclave.runner.jobs.context import JobLimits, open_context
from exclave.runner.jobs.environment import ChildSettings
from exclave.runner.jobs.executor import Executor, JobRun, StopRequest, require_spec, run_guarded
from exclave.runner.jobs.placeholders import gather_values
from exclave.runner.kube.access.clusters import ClusterConnector, list_texts
from exclave.runner.kube.api.client import ClusterClient
from exclave.runner.kube.api.errors import classify
from exclave.runner.kube.changes.ownership import PartOwner
from exclave.runner.kube.changes.state_session import StateSession
from exclave.runner.kube.pull_secrets import (
    ReadPullLogin,
    read_no_login,
    renew_pull_secrets,
)
from exclave.runner.kube.secrets.syncing import MANAGER, SecretSync
from exclave.runner.kube.secrets.wanted import group_targets
from exclave.runner.logs.spool import LogWriter
from exclave.runner.outcomes import WorkFailed, end_by_stop, fail
from exclave.runner.secrets.sealing import Sealer
from exclave.runner.secrets.store import SecretStore, generate_secret
from exclave.runner.states.sealed_store import SealedStore
from exclave.wire.jobs import JsonValue, OutcomeState, Reason
from exclave.wire.kubernetes import ClusterRef
from exclave.wire.runner import Outcome
from exclave.wire.specs import SecretsSpec, SecretTarget, WantedSecret

_WORKSPACE = "secrets"
"""The name of the state that lists the Secrets in the cluster."""
_LAST_S = 10.0
"""The end of a job's time, which is kept for storing the state."""
_LENGTH_STEP = 16
"""Reported lengths are rounded up to a multiple of this, so that they reveal little."""


@dataclass(frozen=True, slots=True)
class SecretClusters:
    """What the executor needs to put secrets into clusters."""

    connector: ClusterConnector
    sealer: Sealer
    clock: Clock
    read_pull_login: ReadPullLogin = read_no_login


class SecretsExecutor(Executor):
    """The executor of `secrets` jobs. No value leaves it but into the customer's own cluster."""

    def __init__(
        self,
        store: SecretStore,
        randomness: Randomness,
        advise: Callable[[str], str],
        clusters: SecretClusters | None = None,
    ) -> None:
        self._store = store
        self._randomness = randomness
        self._advise = advise
        self._clusters = clusters

    async def run(self, job: JobRun, log: LogWriter, stop: StopRequest) -> Outcome:
        """Report which secrets exist; the job fails if a required one is missing."""
        return await run_guarded(job, log, self._run(job, log, stop), classify=classify)

    async def _run(self, job: JobRun, log: LogWriter, stop: StopRequest) -> Outcome:
        spec = require_spec(job, SecretsSpec)
        if stop.reason is not None:
            return end_by_stop(stop.reason, "stopped before it began")
        if self._clusters is None:
            return await self._check(job, spec, log, until=0.0)
        limits = JobLimits(spec.timeout_s)
        context = open_context(
            job, log, stop, clock=self._clusters.clock, children=ChildSettings(), limits=limits
        )
        work = self._check(job, spec, log, until=context.deadline - _LAST_S)
        return await context.guard(work, name="the sync of secrets")

    async def _check(
        self, job: JobRun, spec: SecretsSpec, log: LogWriter, *, until: float
    ) -> Outcome:
        wanted = spec.secrets
        for secret in wanted:
            await self._fill(secret, log)
        there = await self._store.list_names()
        needed = {secret.name for secret in wanted if secret.required}
        # Nothing is written to a cluster unless everything that belongs there is known.
        needed |= {target.secret for target in spec.targets}
        missing = sorted(needed - set(there))
        if missing:
            return fail(Reason.SECRET_MISSING, self._describe_missing(missing))
        held = await self._store.fetch(secret.name for secret in wanted if secret.name in there)
        removed: Sequence[str] = ()
        if spec.cluster is not None:
            removed = await self._sync(job, spec, spec.cluster, held, log, until=until)
        facts: dict[str, JsonValue] = {}
        for secret in wanted:
            length = _measure(held.get(secret.name))
            log.system(f"{secret.name}: {'there' if secret.name in held else 'not given'}")
            places = _list_places(spec.targets, secret.name)
            copied: dict[str, JsonValue] = {"kubernetes_secrets": places} if places else {}
            facts[secret.name] = {"exists": secret.name in held, "length": length, **copied}
        return Outcome(
            state=OutcomeState.SUCCEEDED,
            reason=Reason.COMPLETED,
            message="; ".join(removed),
            outputs={"secrets": facts},
        )

    async def _sync(
        self,
        job: JobRun,
        spec: SecretsSpec,
        cluster: ClusterRef,
        held: Mapping[str, Secret],
        log: LogWriter,
        *,
        until: float,
    ) -> Sequence[str]:
        """Put the secrets into their namespaces; their values are only in bodies of requests.

        Return what was removed because it is no longer wanted.
        """
        if self._clusters is None:
            raise WorkFailed(Reason.KIND_UNSUPPORTED, "this runner works on no clusters")
        wanted = group_targets(spec.targets, held)
        log.hide([*held.values(), *(value for entry in wanted for value in entry.data.values())])
        sealer, clock = self._clusters.sealer, self._clusters.clock
        filler = await gather_values(job, log, list_texts(cluster), self._store, sealer)
        connection = await self._clusters.connector.connect(cluster, filler.fill, job.identity)
        store = SealedStore(_WORKSPACE, uplink=job.uplink, sealer=sealer, folder=job.folder)
        owner = PartOwner(job.uplink.queue_id, _WORKSPACE, MANAGER)
        async with ClusterClient(connection, clock, self._randomness) as client:
            session = StateSession(store, client, self._randomness, job.dispatch.execution_id)
            sync = SecretSync(client, session, owner, log.system, clock, spec.adopt)
            await sync.run(wanted, until=until)
            await self._renew_pull_secrets(job, client, log)
            return sync.removed

    async def _renew_pull_secrets(self, job: JobRun, client: ClusterClient, log: LogWriter) -> None:
        login = None if self._clusters is None else await self._clusters.read_pull_login()
        if login is not None:
            log.hide(login.list_secrets())
            await renew_pull_secrets(client, job.uplink.queue_id, login, log.system)

    async def _fill(self, wanted: WantedSecret, log: LogWriter) -> None:
        """Generate the secret or store its default, unless the customer has set a value."""
        if wanted.auto_generate:
            value = generate_secret(self._randomness)
            if await self._store.put_missing(wanted.name, value):
                log.system(f"{wanted.name}: generated")
        elif wanted.default:
            await self._store.put_missing(wanted.name, Secret(wanted.default))

    def _describe_missing(self, names: Sequence[str]) -> str:
        advice = "; ".join(f"{name}: {self._advise(name)}" for name in names)
        return f"missing on the customer's side: {advice}"


def _list_places(targets: Sequence[SecretTarget], secret: str) -> list[JsonValue]:
    return [
        {"namespace": target.namespace, "name": target.name, "key": target.key}
        for target in targets
        if target.secret == secret
    ]


def _measure(value: Secret | None) -> int:
    length = 0 if value is None else len(value.reveal())
    return -(-length // _LENGTH_STEP) * _LENGTH_STEP
