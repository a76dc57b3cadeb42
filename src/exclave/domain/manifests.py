"""Strict parsing of the manifests that the registry stores, because clients trust them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from exclave.base.json_values import Json, JsonObject
from exclave.domain.registry import ManifestInvalid, is_digest

MAX_MANIFEST = 4 << 20
_MOST_DEPTH = 32

OCI_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
OCI_INDEX = "application/vnd.oci.image.index.v1+json"
MANIFESTS = frozenset({OCI_MANIFEST, "application/vnd.docker.distribution.manifest.v2+json"})
INDEXES = frozenset({OCI_INDEX, "application/vnd.docker.distribution.manifest.list.v2+json"})
"""The only types that are stored; each document is read as what it says it is."""

_FOREIGN = frozenset(
    {
        "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip",
        "application/vnd.oci.image.layer.nondistributable.v1.tar",
        "application/vnd.oci.image.layer.nondistributable.v1.tar+gzip",
        "application/vnd.oci.image.layer.nondistributable.v1.tar+zstd",
    }
)
"""Foreign layers, which are hosted elsewhere; no registry stores them."""


@dataclass(frozen=True, slots=True)
class Content:
    """A descriptor in a manifest: a digest and its size."""

    digest: str
    size: int


@dataclass(frozen=True, slots=True)
class ReadManifest:
    """What the registry stores about a manifest."""

    media_type: str
    artifact_type: str
    blobs: tuple[Content, ...]
    children: tuple[Content, ...]
    subject: str | None
    annotations: Mapping[str, str]

    @property
    def refers(self) -> list[str]:
        """The digests of everything that must be kept as long as the manifest."""
        return sorted({content.digest for content in (*self.blobs, *self.children)})


@dataclass(frozen=True, slots=True)
class StoredManifest:
    """A manifest as it is stored."""

    digest: str
    media_type: str
    content: bytes
    subject: str | None


class Referrer(NamedTuple):
    """A manifest that refers to another one as its subject."""

    digest: str
    media_type: str
    artifact_type: str
    size: int
    annotations: Mapping[str, str]


class ManifestNode(NamedTuple):
    """A manifest of a repository, as far as it keeps other content."""

    digest: str
    subject: str | None
    refers: Sequence[str]
    """The digests of everything that must be kept as long as the manifest."""
    created_at: datetime


def read_manifest(data: bytes, media_type: str) -> ReadManifest:
    """Return a parsed manifest of this media type; raise if it is anything else."""
    if media_type not in MANIFESTS | INDEXES:
        raise ManifestInvalid(
            "this type of manifest is not stored here",
            hint="Push OCI or Docker v2 manifests and indexes, and name the type.",
        )
    document = _parse(data)
    if document.get("schemaVersion") != 2:  # noqa: PLR2004 - the only version there is
        raise ManifestInvalid("`schemaVersion` must be 2")
    if document.get("mediaType", media_type) != media_type:
        raise ManifestInvalid("`mediaType` differs from the type that it was sent as")
    if "manifests" in document and ("layers" in document or "config" in document):
        # Two readers could see two things in it, and check one but run the other.
        raise ManifestInvalid("the document is both an index and a manifest")
    if media_type in INDEXES:
        return _read_index(document, media_type)
    return _read_image(document, media_type)


def _read_image(document: JsonObject, media_type: str) -> ReadManifest:
    config = _read_table(document.get("config"), "config")
    contents = [_read_content(config, "config")]
    for number, listed in enumerate(_list(document, "layers")):
        layer = _read_table(listed, f"layers.{number}")
        content = _read_content(layer, f"layers.{number}")
        if not (layer.get("mediaType") in _FOREIGN and layer.get("urls")):
            contents.append(content)
    own = _text(document, "artifactType")
    return ReadManifest(
        media_type,
        own or _text(config, "mediaType"),
        tuple(contents),
        (),
        _read_subject(document),
        _read_annotations(document),
    )


def _read_index(document: JsonObject, media_type: str) -> ReadManifest:
    children = tuple(
        _read_content(_read_table(child, f"manifests.{number}"), f"manifests.{number}")
        for number, child in enumerate(_list(document, "manifests"))
    )
    return ReadManifest(
        media_type,
        _text(document, "artifactType"),
        (),
        children,
        _read_subject(document),
        _read_annotations(document),
    )


def _parse(data: bytes) -> JsonObject:
    if len(data) > MAX_MANIFEST:
        raise ManifestInvalid(f"the document has more than {MAX_MANIFEST} bytes")
    if b"\\u0000" in data or b"\0" in data:
        raise ManifestInvalid("text may not contain a NUL character")
    try:
        document = json.loads(
            data.decode(), object_pairs_hook=_refuse_doubles, parse_constant=_refuse_constant
        )
        json.dumps(document, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise ManifestInvalid("the document is not JSON that everybody reads alike") from error
    if not isinstance(document, dict) or _depth(document) > _MOST_DEPTH:
        raise ManifestInvalid("the document is not a manifest")
    return document


def _refuse_doubles(pairs: Sequence[tuple[str, Json]]) -> JsonObject:
    made = dict(pairs)
    if len(made) != len(pairs):
        message = "a key stands twice"
        raise ValueError(message)
    return made


def _refuse_constant(name: str) -> None:
    raise ValueError(name)


def _depth(document: object) -> int:
    depth, level = 0, [document]
    while level and depth <= _MOST_DEPTH:
        depth += 1
        level = [
            inner
            for node in level
            if isinstance(node, dict | list)
            for inner in (node.values() if isinstance(node, dict) else node)
        ]
    return depth


def _read_table(value: Json, where: str) -> JsonObject:
    if not isinstance(value, dict):
        raise ManifestInvalid(f"`{where}` must be a descriptor")
    return value


def _read_content(descriptor: JsonObject, where: str) -> Content:
    digest, size = descriptor.get("digest"), descriptor.get("size")
    if not isinstance(digest, str) or not is_digest(digest):
        raise ManifestInvalid(f"`{where}.digest` must be a sha256 or sha512 digest")
    if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size < 1 << 62:
        raise ManifestInvalid(f"`{where}.size` must be a number of bytes")
    _text(descriptor, "mediaType", where)
    return Content(digest, size)


def _read_subject(document: JsonObject) -> str | None:
    subject = document.get("subject")
    if subject is None:
        return None
    return _read_content(_read_table(subject, "subject"), "subject").digest


def _read_annotations(document: JsonObject) -> Mapping[str, str]:
    annotations = document.get("annotations")
    if annotations is None:
        return {}
    if not isinstance(annotations, dict):
        raise ManifestInvalid("`annotations` must be texts by name")
    texts = {name: text for name, text in annotations.items() if isinstance(text, str)}
    if len(texts) != len(annotations):
        raise ManifestInvalid("`annotations` must be texts by name")
    return texts


def _text(table: JsonObject, key: str, where: str = "") -> str:
    text = table.get(key)
    if text is None:
        return ""
    if not isinstance(text, str):
        raise ManifestInvalid(f"`{f'{where}.' if where else ''}{key}` must be a text")
    return text


def _list(document: JsonObject, key: str) -> Sequence[Json]:
    items = document.get(key)
    if not isinstance(items, list):
        raise ManifestInvalid(f"`{key}` must be a list")
    return items
