"""What policies and people are told about an image: its configs, layers, platforms, referrers."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from exclave.base.json_values import (
    Json,
    JsonObject,
    list_or_empty,
    object_or_empty,
    parse_object,
    text_or_empty,
)
from exclave.client.oci.documents import Descriptor
from exclave.client.oci.repository import OciRepository
from exclave.runner.images.graph import ImageNode
from exclave.runner.outcomes import WorkFailed
from exclave.wire.jobs import Reason

_MOST_CONFIG: Final = 4 << 20
_SIGNATURES: Final = (
    "application/vnd.dev.cosign.",
    "application/vnd.dev.sigstore.bundle",
    "application/vnd.cncf.notary.signature",
)
_SBOMS: Final = ("application/spdx+json", "application/vnd.cyclonedx", "application/vnd.syft")


async def read_metadata(source: OciRepository, image: ImageNode, folder: Path) -> JsonObject:
    """Return the metadata of an image; those of its first variant stand for all of them."""
    variants = [
        await _read_variant(source, node, folder / f"config-{at:03d}.json")
        for at, node in enumerate(_list_variants(image))
    ]
    types = [_read_artifact_type(referrer) for referrer in _list_referrers(image)]
    return {
        "media_type": image.media_type,
        "size": image.size,
        "platforms": [variant["platform"] for variant in variants],
        **{key: value for key, value in variants[0].items() if key != "platform"},
        "variants": variants,
        "signatures": [type_ for type_ in types if type_.startswith(_SIGNATURES)],
        "sbom": [type_ for type_ in types if type_.startswith(_SBOMS)],
    }


async def _read_variant(source: OciRepository, node: ImageNode, file: Path) -> JsonObject:
    """Return what the config of a manifest says."""
    config, *layers = node.blobs
    document = await _read_config(source, config, file)
    runtime = object_or_empty(document.get("config"))
    platform = "/".join(
        text_or_empty(document.get(key))
        for key in ("os", "architecture", "variant")
        if document.get(key)
    )
    return {
        "platform": node.platform or platform,
        "created": text_or_empty(document.get("created")),
        "labels": object_or_empty(runtime.get("Labels")),
        "user": text_or_empty(runtime.get("User")),
        "entrypoint": list_or_empty(runtime.get("Entrypoint")),
        "cmd": list_or_empty(runtime.get("Cmd")),
        "exposed_ports": sorted(object_or_empty(runtime.get("ExposedPorts"))),
        "layers": [_write_layer(layer) for layer in layers],
    }


async def _read_config(source: OciRepository, config: Descriptor, file: Path) -> JsonObject:
    if config.size > _MOST_CONFIG:
        message = f"the config {config.digest} of the image has {config.size} bytes"
        raise WorkFailed(Reason.SOURCE_INVALID, message)
    await source.pull_blob(config, file)
    data = await asyncio.to_thread(_read_and_remove, file)
    try:
        return parse_object(data, f"the config {config.digest} of the image")
    except ValueError as error:
        raise WorkFailed(Reason.SOURCE_INVALID, str(error)) from error


def _read_and_remove(file: Path) -> bytes:
    """Return the content of a file, and remove it."""
    data = file.read_bytes()
    file.unlink()
    return data


def _list_variants(image: ImageNode) -> Sequence[ImageNode]:
    """Return the manifests of an image, without those that only describe others."""
    if not image.children:
        return [image]
    variants = [
        variant
        for child in image.children
        for variant in _list_variants(child)
        if child.platform != "unknown/unknown"
    ]
    if not variants:
        raise WorkFailed(Reason.SOURCE_INVALID, f"the index {image.digest} has no image")
    return variants


def _list_referrers(image: ImageNode) -> Sequence[ImageNode]:
    return [
        *image.referrers,
        *(referrer for child in image.children for referrer in _list_referrers(child)),
    ]


def _read_artifact_type(referrer: ImageNode) -> str:
    """Return the type of a referrer; an old one is told by its config."""
    document = parse_object(referrer.data, "the referrer")
    config = object_or_empty(document.get("config"))
    return text_or_empty(document.get("artifactType")) or text_or_empty(config.get("mediaType"))


def _write_layer(layer: Descriptor) -> Json:
    return {"digest": layer.digest, "media_type": layer.mediaType, "size": layer.size}
