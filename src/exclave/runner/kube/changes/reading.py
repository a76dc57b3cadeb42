"""Objects of a text, checked against the cluster and each other before anything is compared."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from exclave.base.json_values import JsonObject, list_or_empty, object_or_empty, text_or_empty
from exclave.runner.kube.api.discovery import Discovery
from exclave.runner.kube.api.objects import (
    ObjectId,
    ObjectsRefused,
    SourceObject,
    describe_flaws,
    identify,
)
from exclave.runner.kube.changes.model import WantedObject


class MadeKind(NamedTuple):
    """A kind that a definition among the objects makes."""

    group: str
    version: str
    kind: str
    namespaced: bool


class _Scope(NamedTuple):
    """Whether kinds are namespaced: as the cluster knows, or as a definition in the text says."""

    discovery: Discovery
    made: dict[tuple[str, str, str], bool]

    def is_namespaced(self, object_id: ObjectId) -> bool | None:
        """Return whether objects of a kind have a namespace; None if nobody knows the kind."""
        key = (object_id.group, object_id.version, object_id.kind)
        resource = self.discovery.find(*key)
        return self.made.get(key) if resource is None else resource.namespaced


def place_objects(
    sources: Iterable[SourceObject], discovery: Discovery, namespace: str
) -> list[WantedObject]:
    """Return the objects with their namespaces. Raises with everything that is wrong at once."""
    sources = list(sources)
    scope = _Scope(discovery, {kind[:3]: kind.namespaced for kind in list_made_kinds(sources)})
    wanted: list[WantedObject] = []
    flaws: list[str] = []
    places: dict[tuple[str, str, str, str], SourceObject] = {}
    for source in sources:
        is_namespaced = scope.is_namespaced(source.id)
        if is_namespaced is None:
            flaws.append(_locate(source) + _describe_unknown(source.id))
            continue
        placed = _place(source, namespace, is_namespaced=is_namespaced)
        first = places.setdefault(_key(placed.id), source)
        if first is not source:
            flaws.append(f"{_locate(source)}`{placed.id.address}` is also {_locate(first)[:-2]}")
        wanted.append(placed)
    if flaws:
        raise ObjectsRefused(describe_flaws(flaws))
    return wanted


def list_made_kinds(sources: Iterable[SourceObject]) -> list[MadeKind]:
    """Return the kinds that the CustomResourceDefinitions among objects make."""
    return [
        kind
        for source in sources
        if source.id.kind == "CustomResourceDefinition"
        for kind in _read_definition(source.value)
    ]


def list_namespaces(wanted: Sequence[WantedObject]) -> set[str]:
    """Return the namespaces that are among the objects themselves."""
    return {
        wanted_object.id.name
        for wanted_object in wanted
        if (wanted_object.id.group, wanted_object.id.kind) == ("", "Namespace")
    }


def _read_definition(value: JsonObject) -> list[MadeKind]:
    spec = object_or_empty(value.get("spec"))
    kind = text_or_empty(object_or_empty(spec.get("names")).get("kind"))
    group = text_or_empty(spec.get("group"))
    return [
        MadeKind(
            group,
            text_or_empty(object_or_empty(version).get("name")),
            kind,
            spec.get("scope") != "Cluster",
        )
        for version in list_or_empty(spec.get("versions"))
        if object_or_empty(version).get("served") is not False
    ]


def _place(source: SourceObject, namespace: str, *, is_namespaced: bool) -> WantedObject:
    metadata = dict(object_or_empty(source.value.get("metadata")))
    if is_namespaced:
        metadata["namespace"] = source.id.namespace or namespace
    else:
        metadata.pop("namespace", None)
    value: JsonObject = {**source.value, "metadata": metadata}
    return WantedObject(identify(value), value)


def _key(object_id: ObjectId) -> tuple[str, str, str, str]:
    """Return what must be unique: the same object in two versions is one object."""
    return object_id.group, object_id.kind, object_id.namespace, object_id.name


def _locate(source: SourceObject) -> str:
    return f"document {source.document}, line {source.line}: "


def _describe_unknown(object_id: ObjectId) -> str:
    return (
        f"the cluster has no kind `{object_id.kind}` in `{object_id.api_version}`, and no"
        " CustomResourceDefinition here makes it"
    )
