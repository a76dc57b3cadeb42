"""Put the customer's secrets into namespaces of a cluster, and remove what is no longer wanted.

Only keys of ours are written and removed: keys that the customer added stay, and a key that
somebody else owns is refused. What was written is in a sealed state, so that it is found again.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Final

from exclave.base.clock import Clock
from exclave.base.json_values import JsonObject, object_or_empty, text_or_empty
from exclave.runner.kube.api.client import ClusterClient
from exclave.runner.kube.api.errors import ApiRefused
from exclave.runner.kube.api.objects import ObjectId
from exclave.runner.kube.changes.namespaces import (
    NamespaceRemover,
    name_namespace,
    write_namespace,
)
from exclave.runner.kube.changes.ownership import PartOwner, read_uid
from exclave.runner.kube.changes.state import KubeState, StateObject, key_of
from exclave.runner.kube.changes.state_session import StateSession
from exclave.runner.kube.secrets.readers import list_readers
from exclave.runner.kube.secrets.restarts import is_restart_due, mark_pending, write_restart
from exclave.runner.kube.secrets.wanted import SecretCopy
from exclave.runner.outcomes import WorkFailed
from exclave.wire.jobs import Reason

MANAGER: Final = "exclave-secrets"
_SECRET: Final = "Secret"  # noqa: S105 - a kind of objects
_NAMESPACE: Final = "Namespace"


@dataclass(slots=True)
class SecretSync:
    """One run. The lock of the state is held while it changes the cluster."""

    client: ClusterClient
    session: StateSession
    owner: PartOwner
    log: Callable[[str], None]
    clock: Clock
    adopt: bool = False
    """Whether the state may be of another cluster, whose copies stay there."""
    removed: list[str] = field(default_factory=list)
    """What was removed and what stays of it, for people."""

    async def run(self, wanted: Sequence[SecretCopy], *, until: float) -> None:
        """Write all wanted Secrets, then remove what is no longer wanted.

        If nothing at all is wanted, the namespaces that were made go too, unless others use them.
        """
        state = await self.session.read("manifest", "", any_cluster=self.adopt)
        if not wanted and not state.objects:
            return
        async with self.session.locked("apply"):
            missing = await self._find_missing_namespaces(wanted)
            added = [name_namespace(name) for name in missing]
            added += [entry.id for entry in wanted]
            state = await self._write(replace(state, objects=_unite(state.objects, added)))
            namespaces = await self._make_namespaces(state, missing)
            written = [await self._apply(entry) for entry in wanted]
            await self._prune(state, {entry.key for entry in written})
            if not wanted:
                await self._remove_namespaces(namespaces, until)
                namespaces = []
            await self._write(replace(state, objects=(*namespaces, *written)))

    async def _write(self, state: KubeState) -> KubeState:
        return await self.session.write(replace(state, serial=state.serial + 1))

    async def _find_missing_namespaces(self, wanted: Sequence[SecretCopy]) -> list[str]:
        names = sorted({entry.namespace for entry in wanted})
        lives = [await self.client.get(name_namespace(name)) for name in names]
        return [name for name, live in zip(names, lives, strict=True) if live is None]

    async def _make_namespaces(self, state: KubeState, missing: Sequence[str]) -> list[StateObject]:
        """Make namespaces; return all that were made for Secrets, now or before."""
        made: dict[str, StateObject] = {
            entry.name: entry for entry in state.objects if entry.kind == _NAMESPACE
        }
        for name in missing:
            value = self.owner.mark(write_namespace(name))
            live = await self.client.apply(value, manager=MANAGER)
            made[name] = StateObject("", _NAMESPACE, "", name, read_uid(live))
            self.log(f"namespace {name}: created")
        return list(made.values())

    async def _apply(self, wanted: SecretCopy) -> StateObject:
        live = await self.client.get(wanted.id)
        value = wanted.write()
        if live is None or self.owner.owns(live):
            value = self.owner.mark(value)
        is_pending = wanted.restart and live is not None and is_restart_due(live, value)
        is_followed = is_pending
        applied = await self._send(wanted, mark_pending(value) if is_pending else value)
        place = f"{wanted.namespace}/{wanted.name}"
        if live is not None and _read_version(live) == _read_version(applied):
            self.log(f"Secret {place}: unchanged")
        else:
            self.log(f"Secret {place}: written ({', '.join(sorted(wanted.data))})")
            is_followed = live is not None
        if is_followed:
            await self._follow_up(wanted, _read_version(applied))
        if is_pending:
            await self._send(wanted, value)
        return StateObject(*key_of(wanted.id), read_uid(applied))

    async def _send(self, wanted: SecretCopy, value: JsonObject) -> JsonObject:
        try:
            return await self.client.apply(value, manager=MANAGER)
        except ApiRefused as refused:
            if refused.status.code != HTTPStatus.CONFLICT:
                raise
            place = f"{wanted.namespace}/{wanted.name}"
            message = f"Secret {place}: somebody else owns a key of it: {refused.status.message}"
            raise WorkFailed(Reason.OBJECT_REFUSED, message) from refused

    async def _follow_up(self, wanted: SecretCopy, version: str) -> None:
        """Name the workloads that read a changed Secret, and restart them where that is asked."""
        for reader in await list_readers(self.client, wanted.namespace, wanted.name):
            if not wanted.restart:
                self.log(f"{reader.address} reads it and keeps the old value until it restarts")
                continue
            await self.client.apply(write_restart(reader, version), manager=MANAGER)
            self.log(f"{reader.address} reads it and is restarted")

    async def _prune(self, state: KubeState, kept: Collection[tuple[str, str, str, str]]) -> None:
        for entry in state.objects:
            if entry.kind == _SECRET and entry.key not in kept:
                await self._remove(entry)

    async def _remove(self, entry: StateObject) -> None:
        """Remove our keys; delete the Secret if we made it and nobody else's key is in it."""
        place = f"{entry.namespace}/{entry.name}"
        object_id = ObjectId("", "v1", _SECRET, entry.namespace, entry.name)
        live = await self.client.get(object_id)
        if live is None:
            return
        if entry.uid and entry.uid != read_uid(live):
            self._note(f"Secret {place} stays: somebody made it anew")
            return
        is_ours = self.owner.owns(live)
        kept = _write_without_keys(object_id, read_uid(live))
        left = await self.client.apply(self.owner.mark(kept) if is_ours else kept, manager=MANAGER)
        if is_ours and not object_or_empty(left.get("data")):
            await self.client.delete(object_id, uid=read_uid(left))
            self._note(f"Secret {place} is removed")
        else:
            self._note(f"Secret {place} stays without the keys of this install: others use it")

    async def _remove_namespaces(self, made: Sequence[StateObject], until: float) -> None:
        remover = NamespaceRemover(self.client, self.clock, lambda _, __: None)
        for entry in made:
            live = await self.client.get(name_namespace(entry.name))
            if live is None or (entry.uid and entry.uid != read_uid(live)):
                continue
            if not self.owner.owns(live):
                self._note(f"the namespace `{entry.name}` stays: it does not carry our mark")
                continue
            stays = await remover.remove(entry.name, read_uid(live), until=until)
            self._note(stays or f"the namespace `{entry.name}` is removed")

    def _note(self, text: str) -> None:
        self.removed.append(text)
        self.log(text)


def _unite(known: Sequence[StateObject], added: Iterable[ObjectId]) -> tuple[StateObject, ...]:
    """Return what may exist from now on: known objects, and those that are about to be made."""
    keys = {entry.key for entry in known}
    new = [StateObject(*key_of(object_id)) for object_id in added if key_of(object_id) not in keys]
    return (*known, *new)


def _write_without_keys(object_id: ObjectId, uid: str) -> JsonObject:
    """Return what takes our keys out of a Secret; the uid keeps it from making a new one."""
    metadata = {"name": object_id.name, "namespace": object_id.namespace, "uid": uid}
    return {"apiVersion": "v1", "kind": _SECRET, "metadata": metadata, "type": "Opaque"}


def _read_version(value: JsonObject) -> str:
    return text_or_empty(object_or_empty(value.get("metadata")).get("resourceVersion"))
