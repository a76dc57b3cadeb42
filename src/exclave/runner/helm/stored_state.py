"""The state of a release's part: read once, written under a lock before and after an apply."""

from dataclasses import dataclass, replace

from exclave.base.ids import Randomness
from exclave.runner.kube.api.client import ClusterClient
from exclave.runner.kube.changes.state import (
    KubeState,
    describe_state,
    read_kube_state,
    write_state,
)
from exclave.runner.outcomes import WorkFailed
from exclave.runner.secrets.sealing import SealBroken
from exclave.runner.states.sealed_store import SealedStore
from exclave.wire.jobs import Reason
from exclave.wire.states import LockInfo

_LINEAGE_BITS = 128


@dataclass(frozen=True, slots=True)
class StateSession:
    """The state of one workspace during a job."""

    store: SealedStore
    client: ClusterClient
    randomness: Randomness
    lock_id: str

    async def read(self, *, cluster: str, namespace: str, release: str) -> KubeState:
        """Return the stored state, or an empty one for this cluster."""
        try:
            opened = await self.store.read()
            state = None if opened is None else read_kube_state(opened.data)
        except SealBroken as problem:
            message = f"the stored state cannot be opened: {problem.message}. {problem.advice}"
            raise WorkFailed(Reason.STATE_REFUSED, message) from problem
        except ValueError as error:
            raise WorkFailed(Reason.STATE_REFUSED, str(error)) from error
        if state is None:
            return KubeState(0, "", "helm", cluster, namespace, release)
        if state.cluster != cluster and state.objects:
            message = (
                "this is another cluster than the one it was deployed to: correct the cluster, or"
                " tear the part down there first"
            )
            raise WorkFailed(Reason.CLUSTER_UNREACHABLE, message)
        return replace(state, cluster=cluster, namespace=namespace, release=release)

    async def lock(self, operation: str) -> None:
        """Acquire the lock of the state."""
        await self.store.lock(LockInfo(id=self.lock_id, operation=operation, who="exclave"))

    async def write(self, state: KubeState) -> KubeState:
        """Store a new version of the state and return it; the first one begins a lineage."""
        if not state.lineage:
            state = replace(state, lineage=f"{self.randomness.bits(_LINEAGE_BITS):032x}")
        data = write_state(state)
        header = describe_state(state, data, await self._list_types())
        await self.store.write(self.lock_id, header, data)
        return state

    async def unlock(self) -> None:
        """Release the lock."""
        await self.store.unlock(self.lock_id)

    async def _list_types(self) -> dict[str, str]:
        discovery = await self.client.discover()
        return {
            f"{group}/{kind}": f"{resource.group}/{resource.version} {kind}".lstrip("/")
            for (group, kind), resource in discovery.preferred.items()
        }
