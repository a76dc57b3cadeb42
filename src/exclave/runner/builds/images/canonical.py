"""Removes from a built image how its layers were had, so that a cache does not change its digest.

buildah writes the names of the images between instructions, which are ids for layers that were
built and names in the cache for others, into the history and the annotations.
"""

import json
import re
from pathlib import Path
from typing import Final

from exclave.base.digests import canonical_json, digest_bytes
from exclave.base.json_values import Json, JsonObject, list_or_empty, object_or_empty, text_or_empty
from exclave.client.oci.documents import INDEX

_BASES: Final = frozenset(
    {"org.opencontainers.image.base.digest", "org.opencontainers.image.base.name"}
)
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")


def make_canonical(layout: Path) -> None:
    """Rewrite the configs, manifests and indexes of a layout."""
    file = layout / "index.json"
    index = object_or_empty(json.loads(file.read_bytes()))
    listed = [_rewrite(layout, item) for item in list_or_empty(index.get("manifests"))]
    file.write_bytes(canonical_json({**index, "manifests": listed}))


def _rewrite(layout: Path, described: Json) -> JsonObject:
    """Rewrite a manifest or an index; return its new descriptor."""
    descriptor = object_or_empty(described)
    document = dict(_read(layout, descriptor))
    if descriptor.get("mediaType") == INDEX:
        children = list_or_empty(document.get("manifests"))
        document["manifests"] = [_rewrite(layout, child) for child in children]
    else:
        document["config"] = _rewrite_config(layout, object_or_empty(document.get("config")))
    annotations = object_or_empty(document.pop("annotations", None))
    kept = {name: value for name, value in annotations.items() if name not in _BASES}
    return _write(layout, descriptor, {**document, **({"annotations": kept} if kept else {})})


def _rewrite_config(layout: Path, descriptor: JsonObject) -> JsonObject:
    config = _read(layout, descriptor)
    history = [_drop_parent(entry) for entry in list_or_empty(config.get("history"))]
    return _write(layout, descriptor, {**config, "history": history})


def _drop_parent(entry: Json) -> JsonObject:
    step = object_or_empty(entry)
    is_parent = text_or_empty(step.get("comment")).startswith("FROM ")
    return {name: value for name, value in step.items() if name != "comment" or not is_parent}


def _read(layout: Path, descriptor: JsonObject) -> JsonObject:
    return object_or_empty(json.loads(_find(layout, descriptor).read_bytes()))


def _write(layout: Path, descriptor: JsonObject, document: JsonObject) -> JsonObject:
    """Write a document in the place of another one; return its descriptor."""
    _find(layout, descriptor).unlink(missing_ok=True)
    data = canonical_json(document)
    written = {**descriptor, "digest": digest_bytes(data), "size": len(data)}
    _find(layout, written).write_bytes(data)
    return written


def _find(layout: Path, descriptor: JsonObject) -> Path:
    digest = text_or_empty(descriptor.get("digest"))
    if not _DIGEST.fullmatch(digest):
        raise ValueError(f"`{digest[:100]}` is not a digest")
    return layout / "blobs" / "sha256" / digest.removeprefix("sha256:")
