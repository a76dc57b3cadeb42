"""Put the customer's secrets into namespaces of a cluster, and remove what is wanted no more.

Only keys of ours are written and removed: keys that the customer added stay, and a key that
somebody else owns is refused. What was written is in a sealed state, so that it is found again.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Final

from exclave.base.ids import Randomness
from exclave.base.json_values import JsonObject, object_or_empty, text_or_empty
from exclave.runner.kube.api.client import ClusterClient
from exclave.runner.kube.api.errors import ApiRefused
from exclave.runner.kube.api.objects import ObjectId
from exclave.runner.kube.changes.ownership import PartOwner
from exclave.runner.kube.changes.state import (
    KubeState,
    StateObject,
    describe_state,
    key_of,
    read_kube_state,
    write_state,
)
from exclave.runner.kube.secrets.readers import list_readers
from exclave.runner.kube.secrets.wanted import WantedObject
from exclave.runner.outcomes import WorkFailed
from exclave.runner.secrets.sealing import SealBroken
from exclave.runner.states.sealed_store import SealedStore
from exclave.wire.jobs import Reason
from exclave.wire.states import LockInfo

MANAGER: Final = "exclave-secrets"
_VERSION: Final = "exclave.dev/secret-version"
"""On the pods of restarted workloads: the Secret's resourceVersion, which tells no value."""
_LINEAGE_BITS: Final = 128
_TYPES: Final = {"/Secret": "v1 Secret"}


@dataclass(slots=True)
class SecretSync:
    """One run. The lock of the state is held while it changes the cluster."""

    client: ClusterClient
    store: SealedStore
    owner: PartOwner
    log: Callable[[str], None]
    randomness: Randomness
    lock_id: str

    async def run(self, wanted: Sequence[WantedObject]) -> None:
        """Write all wanted Secrets, then remove what is wanted no more."""
        state = await self._open_state()
        if not wanted and not state.objects:
            return
        await self.store.lock(LockInfo(id=self.lock_id, operation="apply", who="exclave"))
        try:
            known = {entry.key for entry in state.objects}
            added = [StateObject(*key_of(entry.id)) for entry in wanted]
            union = (*state.objects, *(entry for entry in added if entry.key not in known))
            state = await self._write(replace(state, objects=union))
            for namespace in sorted({entry.namespace for entry in wanted}):
                await self._ensure_namespace(namespace)
            written = [await self._apply(entry) for entry in wanted]
            keys = {entry.key for entry in written}
            for entry in state.objects:
                if entry.key not in keys:
                    await self._remove(entry)
            await self._write(replace(state, objects=tuple(written)))
        finally:
            await self.store.unlock(self.lock_id)

    async def _open_state(self) -> KubeState:
        cluster = await self.client.read_cluster_uid()
        try:
            opened = await self.store.read()
            state = None if opened is None else read_kube_state(opened.data)
        except (SealBroken, ValueError) as error:
            message = f"the list of Secrets cannot be read: {error}"
            raise WorkFailed(Reason.STATE_REFUSED, message) from error
        if state is None:
            lineage = f"{self.randomness.bits(_LINEAGE_BITS):032x}"
            return KubeState(0, lineage, "manifest", cluster, "")
        if state.cluster != cluster and state.objects:
            message = "this is another cluster than the one that has the secrets"
            raise WorkFailed(Reason.CLUSTER_UNREACHABLE, message)
        return replace(state, cluster=cluster)

    async def _write(self, state: KubeState) -> KubeState:
        state = replace(state, serial=state.serial + 1)
        data = write_state(state)
        await self.store.write(self.lock_id, describe_state(state, data, _TYPES), data)
        return state

    async def _ensure_namespace(self, name: str) -> None:
        namespace: JsonObject = {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": name},
        }
        if await self.client.get(ObjectId("", "v1", "Namespace", "", name)) is None:
            await self.client.apply(namespace, manager=MANAGER)
            self.log(f"namespace {name}: created")

    async def _apply(self, wanted: WantedObject) -> StateObject:
        live = await self.client.get(wanted.id)
        value = wanted.write()
        if live is None or self.owner.owns(live):
            value = self.owner.mark(value)
        place = f"{wanted.namespace}/{wanted.name}"
        try:
            applied = await self.client.apply(value, manager=MANAGER)
        except ApiRefused as refused:
            if refused.status.code != HTTPStatus.CONFLICT:
                raise
            message = f"Secret {place}: somebody else owns a key of it: {refused.status.message}"
            raise WorkFailed(Reason.OBJECT_REFUSED, message) from refused
        if live is not None and _read(live, "resourceVersion") == _read(applied, "resourceVersion"):
            self.log(f"Secret {place}: unchanged")
        else:
            self.log(f"Secret {place}: written ({', '.join(sorted(wanted.data))})")
            if live is not None:
                await self._follow_up(wanted, _read(applied, "resourceVersion"))
        return StateObject("", "Secret", wanted.namespace, wanted.name, _read(applied, "uid"))

    async def _follow_up(self, wanted: WantedObject, version: str) -> None:
        """Name the workloads that read a changed Secret, and restart them where that is asked."""
        for reader in await list_readers(self.client, wanted.namespace, wanted.name):
            if not wanted.restart:
                self.log(f"{reader.address} reads it and keeps the old value until it restarts")
                continue
            await self.client.apply(_annotate(reader, version), manager=MANAGER)
            self.log(f"{reader.address} reads it and is restarted")

    async def _remove(self, entry: StateObject) -> None:
        """Remove our keys; delete the Secret if we made it and nobody else's key is in it."""
        object_id = ObjectId("", "v1", "Secret", entry.namespace, entry.name)
        live = await self.client.get(object_id)
        if live is None:
            return
        empty = WantedObject(entry.namespace, entry.name, {}).write()
        kept: JsonObject = {key: value for key, value in empty.items() if key != "data"}
        is_ours = self.owner.owns(live)
        left = await self.client.apply(self.owner.mark(kept) if is_ours else kept, manager=MANAGER)
        if is_ours and not object_or_empty(left.get("data")):
            await self.client.delete(object_id, uid=_read(left, "uid"))
            self.log(f"Secret {entry.namespace}/{entry.name}: removed")
        else:
            self.log(f"Secret {entry.namespace}/{entry.name}: our keys are removed")


def _annotate(reader: ObjectId, version: str) -> JsonObject:
    """Return what makes a workload replace its pods."""
    return {
        "apiVersion": reader.api_version,
        "kind": reader.kind,
        "metadata": {"name": reader.name, "namespace": reader.namespace},
        "spec": {"template": {"metadata": {"annotations": {_VERSION: version}}}},
    }


def _read(value: JsonObject, key: str) -> str:
    return text_or_empty(object_or_empty(value.get("metadata")).get(key))
