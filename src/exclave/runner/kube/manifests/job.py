"""The context of a job that deploys objects: its specification, its state and its cluster."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from exclave.base.ids import Randomness
from exclave.client.problems import RemoteProblem
from exclave.runner.jobs.context import JobContext
from exclave.runner.kube.api.client import ClusterClient
from exclave.runner.kube.api.connection import Connection
from exclave.runner.kube.changes.ownership import PartOwner
from exclave.runner.kube.changes.state import (
    KubeState,
    describe_state,
    read_kube_state,
    write_state,
)
from exclave.runner.outcomes import WorkFailed
from exclave.runner.secrets.sealing import SealBroken, Sealer
from exclave.runner.states.sealed_store import SealedStore
from exclave.wire.jobs import Reason
from exclave.wire.kubernetes import ClusterRef, ManifestSpec
from exclave.wire.states import LockInfo

_LINEAGE_BITS = 128
_UNLOCK_S = 5.0


class ConnectCluster(Protocol):
    """Makes the connection to the cluster that a job names."""

    async def __call__(self, cluster: ClusterRef, fill: Callable[[str], str]) -> Connection:
        """Return the connection; `fill` replaces placeholders by their values."""
        ...


@dataclass(slots=True)
class ManifestJob:
    """What the steps of one job share."""

    context: JobContext
    spec: ManifestSpec
    client: ClusterClient
    store: SealedStore
    sealer: Sealer
    randomness: Randomness

    @property
    def owner(self) -> PartOwner:
        """The part that the objects belong to."""
        part = self.spec.workspace.removeprefix("component:")
        return PartOwner(self.context.job.uplink.queue_id, part)

    async def open_state(self) -> KubeState:
        """Return the state of the part, a new one if nothing was deployed yet.

        Raises if it is the state of another cluster: what is there is not what was deployed.
        """
        cluster = await self.client.read_cluster_uid()
        try:
            opened = await self.store.read()
            state = None if opened is None else read_kube_state(opened.data)
        except SealBroken as problem:
            message = f"the stored state cannot be opened: {problem.message}. {problem.advice}"
            raise WorkFailed(Reason.STATE_REFUSED, message) from problem
        except ValueError as error:
            raise WorkFailed(Reason.STATE_REFUSED, str(error)) from error
        if state is None:
            return KubeState(0, "", "manifest", cluster, self.spec.namespace)
        if state.cluster != cluster and state.objects:
            message = (
                "this is another cluster than the one it was deployed to: correct the cluster, or"
                " tear the part down there first"
            )
            raise WorkFailed(Reason.CLUSTER_UNREACHABLE, message)
        return KubeState(
            state.serial,
            state.lineage,
            "manifest",
            cluster,
            self.spec.namespace,
            objects=state.objects,
            namespaces_made=state.namespaces_made,
            plan=state.plan,
            healthy=state.healthy,
        )

    async def lock_state(self) -> str:
        """Lock the state and return the id of the lock."""
        lock_id = self.context.job.dispatch.execution_id
        await self.store.lock(LockInfo(id=lock_id, operation=self.spec.operation, who="exclave"))
        return lock_id

    async def unlock_state(self, lock_id: str) -> None:
        """Release the lock, if the control plane answers soon: a stopped job has to end.

        A lock whose execution has ended is ignored by the next one.
        """
        with suppress(TimeoutError, RemoteProblem):
            async with asyncio.timeout(_UNLOCK_S):
                await self.store.unlock(lock_id)

    async def write_state(self, lock_id: str, state: KubeState) -> KubeState:
        """Store a version of the state; the first one begins a lineage."""
        if not state.lineage:
            state = _begin_lineage(state, f"{self.randomness.bits(_LINEAGE_BITS):032x}")
        data = write_state(state)
        header = describe_state(state, data, await self._list_types())
        await self.store.write(lock_id, header, data)
        return state

    async def _list_types(self) -> dict[str, str]:
        discovery = await self.client.discover()
        return {
            f"{group}/{kind}": f"{resource.group}/{resource.version} {kind}".lstrip("/")
            for (group, kind), resource in discovery.preferred.items()
        }


def _begin_lineage(state: KubeState, lineage: str) -> KubeState:
    return KubeState(
        state.serial,
        lineage,
        state.kind,
        state.cluster,
        state.namespace,
        objects=state.objects,
        namespaces_made=state.namespaces_made,
        plan=state.plan,
        healthy=state.healthy,
    )
