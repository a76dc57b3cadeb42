"""The context of a job that deploys objects: its specification, its state and its cluster."""

from dataclasses import dataclass

from exclave.runner.jobs.context import JobContext
from exclave.runner.kube.api.client import ClusterClient
from exclave.runner.kube.changes.marked import add_marked
from exclave.runner.kube.changes.ownership import PartOwner
from exclave.runner.kube.changes.state import KubeState
from exclave.runner.kube.changes.state_session import StateSession
from exclave.runner.kube.health.probes import RunInPod
from exclave.runner.kube.pull_secrets import PullSecrets, ReadPullLogin, read_no_login
from exclave.runner.secrets.sealing import Sealer
from exclave.wire.kubernetes import ManifestSpec


@dataclass(frozen=True, slots=True)
class ManifestContext:
    """What the steps of one job share."""

    context: JobContext
    spec: ManifestSpec
    client: ClusterClient
    state: StateSession
    sealer: Sealer
    run_in_pod: RunInPod
    read_pull_login: ReadPullLogin = read_no_login

    @property
    def pull_secrets(self) -> PullSecrets:
        """The login of the registry for the part's pods."""
        log, owner = self.context.log, self.owner
        return PullSecrets(
            self.client, owner.install, owner.part, self.read_pull_login, log.hide, log.system
        )

    @property
    def owner(self) -> PartOwner:
        """The part that the objects belong to."""
        part = self.spec.workspace.removeprefix("component:")
        return PartOwner(self.context.job.uplink.queue_id, part)

    async def read_state(self) -> KubeState:
        """Return the state of the part, see `StateSession.read`.

        Of a part that is adopted, it has what lives in the cluster too, in case it was lost.
        """
        spec = self.spec
        state = await self.state.read(
            "manifest", spec.namespace, any_cluster=spec.takes_any_cluster
        )
        if not spec.adopt:
            return state
        return await add_marked(self.client, self.owner, state, self.context.log.system)
