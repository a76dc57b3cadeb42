"""Which workloads of a namespace read a Secret."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from exclave.base.json_values import Json, JsonObject, object_or_empty
from exclave.runner.kube.api.client import ClusterClient
from exclave.runner.kube.api.lists import Selection
from exclave.runner.kube.api.objects import ObjectId, identify

_WORKLOADS: Final = ("Deployment", "StatefulSet", "DaemonSet")
_NAMES: Final = {"secretRef": "name", "secretKeyRef": "name", "secret": "secretName"}
"""Fields of a pod that name a Secret: of variables, of volumes, and of projected volumes."""


async def list_readers(client: ClusterClient, namespace: str, secret: str) -> list[ObjectId]:
    """Return the workloads whose pods read a Secret, by variables or by volumes."""
    discovery = await client.discover()
    readers: list[ObjectId] = []
    for kind in _WORKLOADS:
        resource = discovery.find("apps", "v1", kind)
        if resource is None:
            continue
        listed = await client.list_objects(resource, Selection(namespace))
        readers += [identify(value) for value in listed.items if reads(value, secret)]
    return readers


def reads(workload: JsonObject, secret: str) -> bool:
    """Return whether the pods of a workload read a Secret."""
    template = object_or_empty(object_or_empty(workload.get("spec")).get("template"))
    return secret in _list_names(template.get("spec"))


def _list_names(value: Json) -> Iterator[Json]:
    if isinstance(value, Mapping):
        for key, part in value.items():
            if key in _NAMES:
                entry = object_or_empty(part)
                yield entry.get(_NAMES[key]) or entry.get("name")
            yield from _list_names(part)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for part in value:
            yield from _list_names(part)
