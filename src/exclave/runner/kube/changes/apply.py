"""Apply planned objects: wave after wave, a few at once, exactly as they were approved."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final

from exclave.base.clock import Clock
from exclave.base.json_values import JsonObject
from exclave.runner.kube.api.client import ClusterClient
from exclave.runner.kube.api.errors import ApiRefused, KindUnknown
from exclave.runner.kube.api.objects import ObjectId
from exclave.runner.kube.changes.cleaning import make_fingerprint
from exclave.runner.kube.changes.model import WantedObject
from exclave.runner.kube.changes.ownership import MANAGER, Owner, read_uid
from exclave.runner.kube.changes.parallel import run_all
from exclave.runner.kube.changes.plan_file import PlannedChange
from exclave.runner.kube.changes.removal import RemovedObject, Remover
from exclave.runner.kube.changes.state import key_of
from exclave.runner.kube.changes.waves import find_wave, split_waves
from exclave.runner.kube.rollouts.ready import check_ready
from exclave.runner.outcomes import WorkFailed
from exclave.wire.jobs import Reason

_NEW_KIND_S: Final = 15.0
"""How long a server may take to serve a kind whose definition it has just established."""
_PAUSE_S: Final = 0.1
_NAMESPACE: Final[JsonObject] = {"apiVersion": "v1", "kind": "Namespace"}


async def find_stale(
    client: ClusterClient, changes: Sequence[PlannedChange]
) -> list[PlannedChange]:
    """Return the changes whose objects do not look any more as they did for the plan."""
    discovery = await client.discover()

    async def is_stale(change: PlannedChange) -> bool:
        if discovery.find(change.id.group, change.id.version, change.id.kind) is None:
            return bool(change.fingerprint)
        live = await client.get(change.id)
        gone_meanwhile = live is None and change.action in {"replace", "delete"}
        return not gone_meanwhile and make_fingerprint(live) != change.fingerprint

    acting = [change for change in changes if change.action not in {"no-op", "keep"}]
    verdicts = await run_all(acting, is_stale)
    return [change for change, stale in zip(acting, verdicts, strict=True) if stale]


@dataclass(slots=True)
class Applier:
    """Applies objects and remembers what they became."""

    client: ClusterClient
    clock: Clock
    owner: Owner
    note: Callable[[str, ObjectId], None]
    """Called before each change, with what happens and to which object."""
    until: float
    """When to give up waiting, by the monotonic clock."""
    applied: dict[tuple[str, str, str, str], JsonObject] = field(default_factory=dict)

    async def make_namespaces(self, names: Sequence[str]) -> None:
        """Create namespaces that are missing; one that somebody made meanwhile is left alone."""
        for name in names:
            object_id = ObjectId("", "v1", "Namespace", "", name)
            if await self.client.get(object_id) is not None:
                continue
            self.note("create", object_id)
            value = self.owner.mark({**_NAMESPACE, "metadata": {"name": name}})
            await self.client.apply(value, manager=MANAGER)

    async def apply_all(
        self, objects: Sequence[WantedObject], changes: Mapping[ObjectId, PlannedChange]
    ) -> None:
        """Apply the objects that change, in waves."""
        acting = [
            (wanted, changes[wanted.id])
            for wanted in objects
            if wanted.id in changes and changes[wanted.id].action != "no-op"
        ]
        for wave in split_waves(acting, lambda entry: find_wave(entry[0].id, entry[0].value)):
            await run_all(wave, self._apply)
            definitions = [entry[0].id for entry in wave if _is_definition(entry[0].id)]
            await run_all(definitions, self._wait_established)
            if definitions:
                self.client.forget_discovery()

    async def _apply(self, entry: tuple[WantedObject, PlannedChange]) -> None:
        wanted, change = entry
        if change.action == "replace":
            await self._remove_first(change)
        self.note(change.action, wanted.id)
        self.applied[key_of(wanted.id)] = await self._send(wanted, force=change.force)

    async def _send(self, wanted: WantedObject, *, force: bool) -> JsonObject:
        """Apply an object; a kind that was defined just now may need a moment."""
        until = self.clock.monotonic() + _NEW_KIND_S
        while True:
            try:
                return await self.client.apply(
                    wanted.value, manager=self.owner.manager, force=force
                )
            except KindUnknown:
                if self.clock.monotonic() > until:
                    raise
            except ApiRefused as refused:
                missing = refused.status.code == HTTPStatus.NOT_FOUND
                if not missing or "namespaces" in refused.status.message:
                    raise
                if self.clock.monotonic() > until:
                    raise
            self.client.forget_discovery()
            await self.clock.sleep(_PAUSE_S)

    async def _remove_first(self, change: PlannedChange) -> None:
        remover = Remover(self.client, self.clock, self.note)
        entry = RemovedObject(change.id, change.uid)
        leftovers = await remover.remove_all([entry], until=self.until)
        if leftovers:
            message = (
                f"{change.id.address} has to be replaced, but {leftovers[0].text}:"
                " it was asked to go, and is still there"
            )
            raise WorkFailed(Reason.LEFTOVERS, message)

    async def _wait_established(self, object_id: ObjectId) -> None:
        while True:
            live = await self.client.get(object_id)
            readiness = check_ready(live or {})
            if live is not None and readiness.ready:
                return
            if readiness.failed or self.clock.monotonic() >= self.until:
                message = f"{object_id.address}: {readiness.text}"
                raise WorkFailed(Reason.OBJECT_REFUSED, message)
            await self.clock.sleep(_PAUSE_S)

    def find_uid(self, object_id: ObjectId) -> str:
        """Return the uid of an object that was applied; empty if it was not."""
        return read_uid(self.applied.get(key_of(object_id), {}))


def _is_definition(object_id: ObjectId) -> bool:
    return object_id.kind == "CustomResourceDefinition"
