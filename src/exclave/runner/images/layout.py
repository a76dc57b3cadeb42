"""Pushes an image from an OCI layout: a folder with blobs by digest and an index."""

import asyncio
import re
from pathlib import Path

from exclave.base.digests import canonical_json, digest_bytes
from exclave.base.json_values import Json, list_or_empty, object_or_empty, parse_object
from exclave.client.oci.documents import (
    INDEX,
    MANIFEST,
    Descriptor,
    Index,
    Manifest,
    PushedManifest,
    read_document,
)
from exclave.client.oci.repository import OciRepository
from exclave.client.oci.uploads import hash_file
from exclave.runner.outcomes import WorkFailed
from exclave.wire.jobs import Reason

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_MOST_MANIFEST = 4 << 20


async def push_layout(layout: Path, target: OciRepository) -> tuple[PushedManifest, int]:
    """Push the only image of a layout, or its only index; return it and the size of all blobs."""
    listed = read_document(Index, await _read(layout / "index.json")).manifests
    if len(listed) != 1:
        raise WorkFailed(Reason.RUNNER_ERROR, f"the layout has {len(listed)} images")
    blobs: dict[str, int] = {}
    pushed = await _push_manifest(layout, listed[0], target, blobs)
    return pushed, sum(blobs.values())


async def _push_manifest(
    layout: Path,
    described: Descriptor,
    target: OciRepository,
    blobs: dict[str, int],
    level: int = 0,
) -> PushedManifest:
    """Push a manifest after its blobs, and an index after its manifests."""
    data = await _read(_find_blob(layout, described.digest))
    if digest_bytes(data) != described.digest:
        message = f"the manifest {described.digest} has other content"
        raise WorkFailed(Reason.RUNNER_ERROR, message)
    if described.mediaType != INDEX:
        manifest = read_document(Manifest, data)
        for blob in (manifest.config, *manifest.layers):
            if blob.digest not in blobs:
                await _push_blob(layout, blob, target)
            blobs[blob.digest] = blob.size
        return await target.put_manifest(data, media_type=manifest.mediaType or MANIFEST)
    if level:
        raise WorkFailed(Reason.RUNNER_ERROR, f"the index {described.digest} is in another one")
    index = parse_object(data, "the index")
    children = sorted(read_document(Index, data).manifests, key=_name_platform)
    for child in children:
        await _push_manifest(layout, child, target, blobs, level + 1)
    # The order in which platforms were built does not count: equal images, equal digest.
    ordered = sorted(
        list_or_empty(index.get("manifests")), key=lambda child: _find_place(child, children)
    )
    whole = canonical_json({**index, "manifests": ordered})
    return await target.put_manifest(whole, media_type=INDEX)


def _name_platform(child: Descriptor) -> tuple[str, str]:
    return (child.platform.write() if child.platform else "", child.digest)


def _find_place(described: Json, children: list[Descriptor]) -> int:
    digest = object_or_empty(described).get("digest")
    return next(at for at, child in enumerate(children) if child.digest == digest)


async def _push_blob(layout: Path, blob: Descriptor, target: OciRepository) -> None:
    file = _find_blob(layout, blob.digest)
    if await asyncio.to_thread(hash_file, file) != (blob.digest, blob.size):
        raise WorkFailed(Reason.RUNNER_ERROR, f"the blob {blob.digest} has other content")
    if not await target.has_blob(blob.digest):
        await target.push_blob(blob, file)


def _find_blob(layout: Path, digest: str) -> Path:
    if not _DIGEST.fullmatch(digest):
        raise WorkFailed(Reason.RUNNER_ERROR, f"`{digest[:100]}` is not a digest")
    return layout / "blobs" / "sha256" / digest.removeprefix("sha256:")


async def _read(file: Path) -> bytes:
    def read() -> bytes:
        with file.open("rb") as data:
            return data.read(_MOST_MANIFEST)

    return await asyncio.to_thread(read)
