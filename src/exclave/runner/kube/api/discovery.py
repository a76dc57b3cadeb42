"""Which kinds a cluster knows, by which paths and with which scope.

Kubernetes since 1.30 answers everything in two requests (v2), since 1.26 in a beta form; older or
limited servers are asked group by group.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote

from exclave.base.json_values import (
    Json,
    JsonObject,
    list_or_empty,
    object_or_empty,
    text_or_empty,
)
from exclave.runner.kube.api.errors import KindUnknown
from exclave.runner.kube.api.objects import ObjectId

_AGGREGATED: Final = "application/json;g=apidiscovery.k8s.io;v={};as=APIGroupDiscoveryList"
ACCEPT: Final = ",".join(
    [_AGGREGATED.format("v2"), _AGGREGATED.format("v2beta1"), "application/json"]
)


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind as a cluster serves it."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool
    verbs: frozenset[str] = frozenset()

    def path(self, namespace: str = "", name: str = "", sub: str = "") -> str:
        """Return the path of a collection, an object or a part of one such as `status`."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        if self.namespaced and namespace:
            root += f"/namespaces/{quote(namespace, safe='')}"
        parts = [root, self.plural, *(quote(part, safe="") for part in (name, sub) if part)]
        return "/".join(parts)


@dataclass(frozen=True, slots=True)
class Discovery:
    """The kinds of a cluster at one moment."""

    resources: Mapping[tuple[str, str, str], Resource]
    """By group, version and kind."""
    unavailable: tuple[str, ...] = ()
    """Group versions whose server does not answer, such as a broken APIService."""
    preferred: Mapping[tuple[str, str], Resource] = field(default_factory=dict)
    """By group and kind, in the version that the server prefers."""

    def find(self, group: str, version: str, kind: str) -> Resource | None:
        """Return the resource of a kind."""
        return self.resources.get((group, version, kind))

    def find_any_version(self, group: str, kind: str) -> Resource | None:
        """Return the resource of a kind in the version that the server prefers."""
        return self.preferred.get((group, kind))

    def require(self, object_id: ObjectId) -> Resource:
        """Return the resource of an object. Raises `KindUnknown`."""
        resource = self.find(object_id.group, object_id.version, object_id.kind)
        if resource is None:
            raise KindUnknown(object_id.api_version, object_id.kind)
        return resource

    def place(self, value: JsonObject, object_id: ObjectId, namespace: str) -> JsonObject:
        """Return an object with the namespace that its kind needs: `namespace` if it has none."""
        metadata = dict(object_or_empty(value.get("metadata")))
        if self.require(object_id).namespaced:
            metadata["namespace"] = object_id.namespace or namespace
        else:
            metadata.pop("namespace", None)
        return {**value, "metadata": metadata}

    def list_api_versions(self) -> list[str]:
        """Return what Helm calls API versions: every group version, and each with its kinds."""
        versions: set[str] = set()
        for resource in self.resources.values():
            version = f"{resource.group}/{resource.version}".lstrip("/")
            versions |= {version, f"{version}/{resource.kind}"}
        return sorted(versions)


def collect(resources: Iterable[Resource], unavailable: Iterable[str] = ()) -> Discovery:
    """Return a discovery; resources come in the server's order of preference."""
    by_version: dict[tuple[str, str, str], Resource] = {}
    preferred: dict[tuple[str, str], Resource] = {}
    for resource in resources:
        by_version.setdefault((resource.group, resource.version, resource.kind), resource)
        preferred.setdefault((resource.group, resource.kind), resource)
    return Discovery(by_version, tuple(unavailable), preferred)


def is_aggregated(document: JsonObject) -> bool:
    """Return whether a reply of `/api` or `/apis` holds the resources of all groups."""
    return document.get("kind") == "APIGroupDiscoveryList"


def read_aggregated(document: JsonObject) -> tuple[list[Resource], list[str]]:
    """Return the resources of an aggregated reply, and the group versions that do not answer."""
    resources: list[Resource] = []
    unavailable: list[str] = []
    for item in _objects(document.get("items")):
        group = text_or_empty(object_or_empty(item.get("metadata")).get("name"))
        for version in _objects(item.get("versions")):
            name = text_or_empty(version.get("version"))
            if version.get("freshness") == "Stale":
                unavailable.append(f"{group}/{name}".lstrip("/"))
            resources += [
                Resource(
                    group,
                    name,
                    text_or_empty(object_or_empty(entry.get("responseKind")).get("kind")),
                    text_or_empty(entry.get("resource")),
                    entry.get("scope") == "Namespaced",
                    _read_verbs(entry),
                )
                for entry in _objects(version.get("resources"))
            ]
    return resources, unavailable


def list_versions(document: JsonObject) -> list[str]:
    """Return the paths of all group versions of a plain reply, preferred versions first."""
    if document.get("kind") == "APIVersions":
        return [f"/api/{text_or_empty(name)}" for name in list_or_empty(document.get("versions"))]
    paths: list[str] = []
    for group in _objects(document.get("groups")):
        preferred = object_or_empty(group.get("preferredVersion"))
        versions = [preferred, *_objects(group.get("versions"))]
        names = [text_or_empty(version.get("groupVersion")) for version in versions]
        paths += [f"/apis/{name}" for name in dict.fromkeys(names) if name]
    return paths


def read_resource_list(document: JsonObject) -> list[Resource]:
    """Return the resources of one group version."""
    group, _, version = text_or_empty(document.get("groupVersion")).rpartition("/")
    return [
        Resource(
            group,
            version,
            text_or_empty(entry.get("kind")),
            text_or_empty(entry.get("name")),
            entry.get("namespaced") is True,
            _read_verbs(entry),
        )
        for entry in _objects(document.get("resources"))
        if "/" not in text_or_empty(entry.get("name"))
    ]


def _read_verbs(entry: JsonObject) -> frozenset[str]:
    return frozenset(text_or_empty(verb) for verb in list_or_empty(entry.get("verbs")))


def _objects(value: Json) -> list[JsonObject]:
    return [object_or_empty(item) for item in list_or_empty(value)]
