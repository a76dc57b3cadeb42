"""Small container images to push into registries."""

import gzip
import hashlib
import json
import random
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

from exclave.client.oci.documents import INDEX, MANIFEST, Descriptor
from exclave.client.oci.repository import OciRepository

CONFIG_TYPE = "application/vnd.oci.image.config.v1+json"
LAYER_TYPE = "application/vnd.oci.image.layer.v1.tar+gzip"


def digest_of(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def make_layer(seed: int, size: int = 1000) -> bytes:
    """Return bytes that stand for a layer, the same for the same seed."""
    return random.Random(seed).randbytes(size)


def make_tar_layer(files: Mapping[str, bytes]) -> bytes:
    """Return a real layer with these files, which images can be built on."""
    plain = BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as archive:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, BytesIO(data))
    return gzip.compress(plain.getvalue(), mtime=0)


def describe_rootfs(layer: bytes) -> dict[str, Any]:
    """Return the part of a config that names its only layer."""
    digest = hashlib.sha256(gzip.decompress(layer)).hexdigest()
    return {"rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]}, "config": {}}


def describe(data: bytes, kind: str, **more: Any) -> dict[str, Any]:
    return {"mediaType": kind, "digest": digest_of(data), "size": len(data), **more}


@dataclass(frozen=True)
class MadeImage:
    """A manifest or an index, and the content that has to be pushed before it."""

    data: bytes
    media_type: str = MANIFEST
    blobs: tuple[bytes, ...] = ()
    children: tuple["MadeImage", ...] = ()
    platform: dict[str, str] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        return digest_of(self.data)

    def descriptor(self, **more: Any) -> dict[str, Any]:
        return describe(self.data, self.media_type, **more)


def make_image(
    *layers: bytes,
    platform: str = "linux/amd64",
    config: dict[str, Any] | None = None,
    **more: Any,
) -> MadeImage:
    """Return an image for one platform."""
    os, architecture, *variant = platform.split("/")
    facts: dict[str, Any] = {"os": os, "architecture": architecture, **(config or {})}
    machine = {"os": os, "architecture": architecture}
    if variant:
        machine["variant"] = facts["variant"] = variant[0]
    content = json.dumps(facts).encode()
    document = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": describe(content, CONFIG_TYPE),
        "layers": [describe(layer, LAYER_TYPE) for layer in layers],
        **more,
    }
    return MadeImage(json.dumps(document).encode(), blobs=(content, *layers), platform=machine)


def make_index(*images: MadeImage, **more: Any) -> MadeImage:
    """Return an index of images for several platforms."""
    document = {
        "schemaVersion": 2,
        "mediaType": INDEX,
        "manifests": [each.descriptor(platform=each.platform) for each in images],
        **more,
    }
    return MadeImage(json.dumps(document).encode(), INDEX, children=images)


def make_referrer(subject: MadeImage, content: bytes, kind: str) -> MadeImage:
    """Return an artifact that refers to an image, such as an SBOM."""
    return make_image(content, artifactType=kind, subject=subject.descriptor())


async def push_image(
    repository: OciRepository, image: MadeImage, folder: Path, tag: str = ""
) -> str:
    """Push an image with everything that it is made of; return its digest."""
    for child in image.children:
        await push_image(repository, child, folder)
    for blob in image.blobs:
        file = folder / "pushed-blob"
        file.write_bytes(blob)
        about = Descriptor(mediaType=LAYER_TYPE, digest=digest_of(blob), size=len(blob))
        if not await repository.has_blob(about.digest):
            await repository.push_blob(about, file)
    await repository.put_manifest(
        image.data, media_type=image.media_type, reference=tag or image.digest
    )
    return image.digest
