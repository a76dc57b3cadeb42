"""Pushes an image from an OCI layout: a folder with blobs by digest and an index."""

import asyncio
import re
from pathlib import Path

from exclave.base.digests import digest_bytes
from exclave.client.oci.documents import (
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
    """Push the only image of a layout; return its manifest and the size of its blobs."""
    listed = read_document(Index, await _read(layout / "index.json")).manifests
    if len(listed) != 1:
        raise WorkFailed(Reason.RUNNER_ERROR, f"the layout has {len(listed)} images")
    digest = listed[0].digest
    data = await _read(_find_blob(layout, digest))
    if digest_bytes(data) != digest:
        raise WorkFailed(Reason.RUNNER_ERROR, f"the manifest {digest} has other content")
    manifest = read_document(Manifest, data)
    blobs = {blob.digest: blob for blob in (manifest.config, *manifest.layers)}
    for blob in blobs.values():
        await _push_blob(layout, blob, target)
    pushed = await target.put_manifest(data, media_type=manifest.mediaType or MANIFEST)
    return pushed, sum(blob.size for blob in blobs.values())


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
