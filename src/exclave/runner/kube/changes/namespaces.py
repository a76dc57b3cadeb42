"""Namespaces that a part made: removed unless something of others is in them, waited for."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from exclave.base.clock import Clock
from exclave.base.json_values import JsonObject, object_or_empty, text_or_empty
from exclave.runner.kube.api.client import ClusterClient
from exclave.runner.kube.api.errors import ApiRefused
from exclave.runner.kube.api.lists import Selection
from exclave.runner.kube.api.objects import ObjectId, identify
from exclave.runner.kube.changes.ownership import is_ending, read_uid
from exclave.runner.kube.changes.removal import RemovedObject, Remover
from exclave.runner.outcomes import WorkFailed
from exclave.wire.jobs import Reason

_EMPTYING_S: Final = 30.0
"""How long objects that are being deleted may take to be gone."""
_GOING_S: Final = 60.0
"""How long a namespace that an interrupted teardown began to remove may take to be gone."""
_PAUSE_S: Final = 0.5
_MOST_NAMED: Final = 3
_ALWAYS_THERE: Final = frozenset({("ServiceAccount", "default"), ("ConfigMap", "kube-root-ca.crt")})
_IGNORED_KINDS: Final = frozenset({"Event", "Endpoints", "EndpointSlice", "PodMetrics"})


def name_namespace(name: str) -> ObjectId:
    """Return what identifies a namespace."""
    return ObjectId("", "v1", "Namespace", "", name)


def write_namespace(name: str) -> JsonObject:
    """Return a namespace for the request that makes it."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


async def find_lasting_namespace(
    client: ClusterClient, clock: Clock, name: str
) -> JsonObject | None:
    """Return a namespace, None if there is none; wait for the end of one that is being removed."""
    until = clock.monotonic() + _GOING_S
    while True:
        live = await client.get(name_namespace(name))
        if live is None or not is_ending(live):
            return live
        if clock.monotonic() >= until:
            since = text_or_empty(object_or_empty(live.get("metadata")).get("deletionTimestamp"))
            message = (
                f"the namespace `{name}` is being removed since {since}: find out which of its"
                " objects stays, and deploy again once it is gone"
            )
            raise WorkFailed(Reason.LEFTOVERS, message)
        await clock.sleep(_PAUSE_S)


@dataclass(frozen=True, slots=True)
class NamespaceRemover:
    """Removes namespaces that hold nothing but what every namespace has."""

    client: ClusterClient
    clock: Clock
    note: Callable[[str, ObjectId], None]
    """Called before each removal, with what happens and to which object."""

    async def remove(self, name: str, uid: str, *, until: float) -> str:
        """Remove a namespace; return why it stays, empty if it does not."""
        try:
            others = await self._await_empty(name, until)
        except ApiRefused as refused:
            return f"the namespace `{name}` stays: what is in it cannot be listed ({refused})"
        if others:
            return f"the namespace `{name}` stays, because of {_name_some(others)} in it"
        entry = RemovedObject(name_namespace(name), uid)
        left = await Remover(self.client, self.clock, self.note).remove_all([entry], until=until)
        return f"the namespace `{name}` {left[0].text}" if left else ""

    async def _await_empty(self, name: str, until: float) -> list[JsonObject]:
        """Return what is in a namespace once nothing in it is going away any more."""
        until = min(self.clock.monotonic() + _EMPTYING_S, until)
        while True:
            others = await self._list_others(name)
            if not any(map(_is_going, others)) or self.clock.monotonic() >= until:
                return others
            await self.clock.sleep(_PAUSE_S)

    async def _list_others(self, namespace: str) -> list[JsonObject]:
        """Return the objects in a namespace that not every namespace has."""
        discovery = await self.client.discover()
        others: list[JsonObject] = []
        for resource in discovery.preferred.values():
            listable = resource.namespaced and "list" in resource.verbs
            if not listable or resource.kind in _IGNORED_KINDS:
                continue
            listed = await self.client.list_objects(resource, Selection(namespace))
            others += [
                value
                for value in listed.items
                if (resource.kind, identify(value).name) not in _ALWAYS_THERE and read_uid(value)
            ]
        return others


def _is_going(value: JsonObject) -> bool:
    """Return whether an object is being deleted, or goes with the object that owns it."""
    metadata = object_or_empty(value.get("metadata"))
    return bool(metadata.get("deletionTimestamp") or metadata.get("ownerReferences"))


def _name_some(objects: Sequence[JsonObject]) -> str:
    named = ", ".join(identify(value).address for value in objects[:_MOST_NAMED])
    more = len(objects) - _MOST_NAMED
    return f"{named} and {more} more" if more > 0 else named
