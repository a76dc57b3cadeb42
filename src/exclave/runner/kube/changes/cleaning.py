"""Live objects without what the server adds to each of them, and fingerprints of them."""

import hashlib
import json
from typing import Final

from exclave.base.json_values import JsonObject, object_or_empty

_METADATA: Final = frozenset(
    {
        "managedFields",
        "resourceVersion",
        "generation",
        "uid",
        "creationTimestamp",
        "selfLink",
    }
)
_ANNOTATIONS: Final = frozenset(
    {
        "kubectl.kubernetes.io/last-applied-configuration",
        "deployment.kubernetes.io/revision",
    }
)


def clean(value: JsonObject) -> JsonObject:
    """Return an object without its status and without what only the server writes."""
    metadata = {
        key: part
        for key, part in object_or_empty(value.get("metadata")).items()
        if key not in _METADATA
    }
    annotations = {
        key: part
        for key, part in object_or_empty(metadata.get("annotations")).items()
        if key not in _ANNOTATIONS
    }
    if annotations:
        metadata["annotations"] = annotations
    else:
        metadata.pop("annotations", None)
    rest = {key: part for key, part in value.items() if key not in {"status", "metadata"}}
    return {**rest, "metadata": metadata}


def make_fingerprint(value: JsonObject | None) -> str:
    """Return what tells whether an object was changed since; empty if there is none."""
    if value is None:
        return ""
    text = json.dumps(clean(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()
