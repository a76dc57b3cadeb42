"""Objects of a part that its state does not have any more, found again by the marks they carry."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import Final

from exclave.base.json_values import JsonObject, list_or_empty, object_or_empty
from exclave.runner.kube.api.client import ClusterClient
from exclave.runner.kube.api.discovery import Resource
from exclave.runner.kube.api.errors import ApiRefused
from exclave.runner.kube.api.lists import Selection
from exclave.runner.kube.api.objects import identify
from exclave.runner.kube.changes.ownership import Owner, read_annotation, read_uid
from exclave.runner.kube.changes.parallel import run_all
from exclave.runner.kube.changes.state import KubeState, StateObject, key_of

_DERIVED: Final = frozenset({"Event", "Endpoints", "EndpointSlice", "ControllerRevision"})
"""Kinds that controllers make, partly with copies of the marks."""
_HOOK: Final = "helm.sh/hook"


async def add_marked(
    client: ClusterClient, owner: Owner, state: KubeState, say: Callable[[str], None]
) -> KubeState:
    """Return the state with all objects in the cluster that the part has applied and marked.

    Controllers and people copy annotations, so a mark alone proves nothing: the field manager of
    the part must have applied the object, and no controller may own it.
    """
    discovery = await client.discover()
    kinds = [
        resource
        for resource in discovery.preferred.values()
        if "list" in resource.verbs and resource.kind not in _DERIVED
    ]

    async def find(resource: Resource) -> Sequence[JsonObject] | None:
        return await _list_kind(client, resource, state.namespace)

    listed = await run_all(kinds, find)
    unseen = [
        resource.kind for resource, values in zip(kinds, listed, strict=True) if values is None
    ]
    if unseen:
        say(f"warning: not looked for, because the runner may not list them: {', '.join(unseen)}")
    marked = [value for values in listed for value in values or () if owner.owns(value)]
    ours = [value for value in marked if _is_applied_by(owner, value, say)]
    return _unite(state, ours, say)


def _unite(state: KubeState, ours: Sequence[JsonObject], say: Callable[[str], None]) -> KubeState:
    known = {entry.key for entry in state.objects}
    regained: list[StateObject] = []
    made: list[str] = []
    for value in ours:
        object_id = identify(value)
        if object_id.kind == "Namespace" and not object_id.group:
            # It is never removed as an object of the part: others may be in it.
            made.append(object_id.name)
        elif key_of(object_id) not in known:
            regained.append(StateObject(*key_of(object_id), read_uid(value)))
    for entry in regained:
        say(f"found again by its mark: {entry.address}")
    namespaces = tuple(dict.fromkeys((*state.namespaces_made, *made)))
    return replace(state, objects=(*state.objects, *regained), namespaces_made=namespaces)


async def _list_kind(
    client: ClusterClient, resource: Resource, namespace: str
) -> Sequence[JsonObject] | None:
    """Return the objects of a kind that the runner may see; None if it may see none."""
    places = ["", namespace] if resource.namespaced and namespace else [""]
    for place in places:
        try:
            return (await client.list_objects(resource, Selection(place))).items
        except ApiRefused as refused:
            if refused.status.code == HTTPStatus.METHOD_NOT_ALLOWED:
                return []
            if refused.status.code != HTTPStatus.FORBIDDEN:
                raise
    return None


def _is_applied_by(owner: Owner, value: JsonObject, say: Callable[[str], None]) -> bool:
    metadata = object_or_empty(value.get("metadata"))
    owners = map(object_or_empty, list_or_empty(metadata.get("ownerReferences")))
    if any(entry.get("controller") is True for entry in owners) or read_annotation(value, _HOOK):
        return False
    managers = {
        entry.get("manager")
        for entry in map(object_or_empty, list_or_empty(metadata.get("managedFields")))
        if not entry.get("subresource")
    }
    if owner.manager in managers:
        return True
    say(f"left alone, because it carries the mark but is a copy: {identify(value).address}")
    return False
