"""The stored state of a part during a job: read once, written under a lock."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from typing import Final, Literal

from exclave.base.ids import Randomness
from exclave.client.problems import RemoteProblem
from exclave.runner.kube.api.client import ClusterClient
from exclave.runner.kube.changes.state import (
    KubeState,
    describe_state,
    move,
    read_kube_state,
    write_state,
)
from exclave.runner.outcomes import WorkFailed
from exclave.runner.secrets.sealing import SealBroken
from exclave.runner.states.sealed_store import SealedStore
from exclave.wire.jobs import Reason
from exclave.wire.states import LockInfo

_LINEAGE_BITS: Final = 128
_UNLOCK_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class StateSession:
    """The state of one workspace during a job."""

    store: SealedStore
    client: ClusterClient
    randomness: Randomness
    lock_id: str

    async def read(
        self,
        kind: Literal["helm", "manifest"],
        namespace: str,
        release: str = "",
        *,
        any_cluster: bool = False,
    ) -> KubeState:
        """Return the state of the part, an empty one if nothing was deployed yet.

        Raises if it is the state of another cluster: what is there is not what was deployed. With
        `any_cluster` it becomes that of this one, where nothing is known to have been made.
        """
        cluster = await self.client.read_cluster_uid()
        state = await self._open()
        if state is None:
            return KubeState(0, "", kind, cluster, namespace, release)
        if state.cluster != cluster and state.objects:
            if not any_cluster:
                message = (
                    "this is another cluster than the one it was deployed to: correct the cluster,"
                    " or confirm the new one with `exclave installs adopt INSTALL COMPONENT`"
                )
                raise WorkFailed(Reason.CLUSTER_UNREACHABLE, message)
            state = move(state)
        return replace(state, kind=kind, cluster=cluster, namespace=namespace, release=release)

    @asynccontextmanager
    async def locked(self, operation: str) -> AsyncIterator[None]:
        """Hold the lock of the state while the block lasts."""
        await self.store.lock(LockInfo(id=self.lock_id, operation=operation, who="exclave"))
        try:
            yield
        finally:
            # A stopped job has to end soon. The next execution ignores a lock that stayed.
            with suppress(TimeoutError, RemoteProblem):
                async with asyncio.timeout(_UNLOCK_S):
                    await self.store.unlock(self.lock_id)

    async def write(self, state: KubeState) -> KubeState:
        """Store a new version of the state and return it; the first one begins a lineage."""
        if not state.lineage:
            state = replace(state, lineage=f"{self.randomness.bits(_LINEAGE_BITS):032x}")
        data = write_state(state)
        header = describe_state(state, data, await self._list_types())
        await self.store.write(self.lock_id, header, data)
        return state

    async def _open(self) -> KubeState | None:
        try:
            opened = await self.store.read()
            return None if opened is None else read_kube_state(opened.data)
        except SealBroken as problem:
            message = f"the stored state cannot be opened: {problem.message}. {problem.advice}"
            raise WorkFailed(Reason.STATE_REFUSED, message) from problem
        except ValueError as error:
            raise WorkFailed(Reason.STATE_REFUSED, str(error)) from error

    async def _list_types(self) -> dict[str, str]:
        discovery = await self.client.discover()
        return {
            f"{group}/{kind}": f"{resource.group}/{resource.version} {kind}".lstrip("/")
            for (group, kind), resource in discovery.preferred.items()
        }
