"""Restarts of workloads that read a changed Secret; an interrupted one is caught up with."""

from typing import Final

from exclave.base.json_values import JsonObject, object_or_empty
from exclave.runner.kube.api.objects import ObjectId
from exclave.runner.kube.changes.ownership import read_annotation

_PENDING: Final = "exclave.dev/restart"
"""On a Secret: its readers have not all been restarted since it changed."""
_VERSION: Final = "exclave.dev/secret-version"
"""On the pods of restarted workloads: the Secret's resourceVersion, which tells no value."""


def is_restart_due(live: JsonObject, wanted: JsonObject) -> bool:
    """Return whether values change, or a job ended before it had restarted what reads them."""
    data = object_or_empty(live.get("data"))
    keys = object_or_empty(wanted.get("data"))
    return bool(read_annotation(live, _PENDING)) or any(
        data.get(key) != value for key, value in keys.items()
    )


def mark_pending(value: JsonObject) -> JsonObject:
    """Return a Secret that says that its readers are yet to be restarted."""
    metadata = object_or_empty(value.get("metadata"))
    annotations = {**object_or_empty(metadata.get("annotations")), _PENDING: "pending"}
    return {**value, "metadata": {**metadata, "annotations": annotations}}


def write_restart(reader: ObjectId, version: str) -> JsonObject:
    """Return what makes a workload replace its pods."""
    return {
        "apiVersion": reader.api_version,
        "kind": reader.kind,
        "metadata": {"name": reader.name, "namespace": reader.namespace},
        "spec": {"template": {"metadata": {"annotations": {_VERSION: version}}}},
    }
