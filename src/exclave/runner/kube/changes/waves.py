"""The order in which objects are applied: in waves, each wave at once; removals in reverse."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeVar

from exclave.base.json_values import JsonObject, object_or_empty, text_or_empty
from exclave.runner.kube.api.objects import ObjectId

WAVE_ANNOTATION: Final = "exclave.dev/wave"
"""Moves an object to another wave."""
DEFINITION_WAVE: Final = 0
"""The wave of namespaces and definitions: what follows may be of kinds that it makes."""
_WORKLOADS: Final = 5
_LAST: Final = 6
_MOST: Final = 1000

_KINDS: Final[Mapping[str, int]] = {
    **dict.fromkeys(("Namespace", "CustomResourceDefinition"), DEFINITION_WAVE),
    **dict.fromkeys(("PriorityClass", "StorageClass", "IngressClass", "RuntimeClass"), 1),
    **dict.fromkeys(
        (
            "ServiceAccount",
            "Secret",
            "ConfigMap",
            "PersistentVolume",
            "PersistentVolumeClaim",
            "LimitRange",
            "ResourceQuota",
        ),
        2,
    ),
    **dict.fromkeys(("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"), 3),
    **dict.fromkeys(("Service", "NetworkPolicy", "PodDisruptionBudget"), 4),
    **dict.fromkeys(
        (
            "APIService",
            "ValidatingWebhookConfiguration",
            "MutatingWebhookConfiguration",
            "ValidatingAdmissionPolicy",
            "ValidatingAdmissionPolicyBinding",
            "MutatingAdmissionPolicy",
            "MutatingAdmissionPolicyBinding",
        ),
        _LAST,
    ),
}

T = TypeVar("T")


def find_wave(object_id: ObjectId, value: JsonObject | None = None) -> int:
    """Return the wave of an object: that of its annotation, else that of its kind."""
    metadata = object_or_empty((value or {}).get("metadata"))
    text = text_or_empty(object_or_empty(metadata.get("annotations")).get(WAVE_ANNOTATION))
    if text.removeprefix("-").isdecimal():
        return max(-_MOST, min(int(text), _MOST))
    if not _is_built_in(object_id.group):
        return _WORKLOADS
    return _KINDS.get(object_id.kind, _WORKLOADS)


def split_waves(entries: Iterable[T], wave_of: Callable[[T], int]) -> list[list[T]]:
    """Return entries grouped by their waves, the first wave first."""
    waves: dict[int, list[T]] = {}
    for entry in entries:
        waves.setdefault(wave_of(entry), []).append(entry)
    return [waves[number] for number in sorted(waves)]


def _is_built_in(group: str) -> bool:
    """Return whether a group is Kubernetes' own: others may use the same names of kinds."""
    return "." not in group or group.endswith(".k8s.io")
