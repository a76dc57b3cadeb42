"""Follow objects until all of them are ready: one watch per kind and namespace, no polling."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Final

from exclave.base.json_values import JsonObject, object_or_empty, text_or_empty
from exclave.runner.kube.api.client import ClusterClient
from exclave.runner.kube.api.discovery import Resource
from exclave.runner.kube.api.lists import Selection
from exclave.runner.kube.api.objects import ObjectId
from exclave.runner.kube.api.watch import Changed, Listed, Removed, WatchEvent
from exclave.runner.kube.rollouts.ready import READY, Readiness, check_ready

_WATCHES: Final = 12
"""Watches at once; further kinds and namespaces wait for the first to become ready."""
_UNSEEN: Final = Readiness(ready=False, text="it was not seen yet")
_GONE: Final = Readiness(ready=False, text="it is gone")
_LATE: Final = "WaitForFirstConsumer"


@dataclass(slots=True)
class Followed:
    """An object that is waited for, as it was seen last."""

    id: ObjectId
    value: JsonObject = field(default_factory=dict)
    readiness: Readiness = _UNSEEN


class Followers:
    """The objects of a rollout. `changed` is called with each one whose readiness changed."""

    def __init__(
        self,
        client: ClusterClient,
        objects: Sequence[ObjectId],
        changed: Callable[[Followed], None] = lambda _: None,
    ) -> None:
        self._client = client
        self._changed = changed
        self._late_classes: frozenset[str] | None = None
        self.objects = {object_id: Followed(object_id) for object_id in objects}

    def list_unready(self) -> list[Followed]:
        """Return what is not ready yet."""
        return [entry for entry in self.objects.values() if not entry.readiness.ready]

    async def follow_all(self) -> None:
        """Return as soon as every object is ready."""
        groups: dict[tuple[Resource, str], list[Followed]] = {}
        discovery = await self._client.discover()
        for object_id, entry in self.objects.items():
            resource = discovery.require(object_id)
            groups.setdefault((resource, object_id.namespace), []).append(entry)
        places = asyncio.Semaphore(_WATCHES)

        async def follow(resource: Resource, namespace: str, members: list[Followed]) -> None:
            async with places:
                await self._follow(resource, namespace, members)

        async with asyncio.TaskGroup() as tasks:
            for (resource, namespace), members in groups.items():
                tasks.create_task(follow(resource, namespace, members))

    async def _follow(self, resource: Resource, namespace: str, members: list[Followed]) -> None:
        names = {entry.id.name: entry for entry in members}
        only = f"metadata.name={members[0].id.name}" if len(members) == 1 else ""
        events = self._client.watch(resource, Selection(namespace, fields=only))
        async with aclosing(events) as stream:
            async for event in stream:
                await self._see(event, names)
                if all(entry.readiness.ready for entry in members):
                    return

    async def _see(self, event: WatchEvent, names: dict[str, Followed]) -> None:
        match event:
            case Listed(objects):
                seen = {_read_name(value): value for value in objects}
                for name, entry in names.items():
                    await self._update(entry, seen.get(name))
            case Changed(value):
                if _read_name(value) in names:
                    await self._update(names[_read_name(value)], value)
            case Removed(value):
                if _read_name(value) in names:
                    await self._update(names[_read_name(value)], None)

    async def _update(self, entry: Followed, value: JsonObject | None) -> None:
        before = entry.readiness
        entry.value = value or {}
        entry.readiness = _GONE if value is None else check_ready(_add_kind(value, entry.id))
        if entry.id.kind == "PersistentVolumeClaim" and value and await self._binds_late(value):
            entry.readiness = READY
        if entry.readiness != before:
            self._changed(entry)

    async def _binds_late(self, claim: JsonObject) -> bool:
        """Return whether a claim is bound only when a pod uses it."""
        if self._late_classes is None:
            resource = (await self._client.discover()).find_any_version(
                "storage.k8s.io", "StorageClass"
            )
            listed = [] if resource is None else (await self._client.list_objects(resource)).items
            self._late_classes = frozenset(
                _read_name(entry) for entry in listed if entry.get("volumeBindingMode") == _LATE
            )
        name = object_or_empty(claim.get("spec")).get("storageClassName")
        return text_or_empty(name) in self._late_classes


def _add_kind(value: JsonObject, object_id: ObjectId) -> JsonObject:
    return {"apiVersion": object_id.api_version, "kind": object_id.kind, **value}


def _read_name(value: JsonObject) -> str:
    return text_or_empty(object_or_empty(value.get("metadata")).get("name"))
