"""The graph of an image: its manifest or index, children, blobs and referrers."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NoReturn

from exclave.base.digests import canonical_json, digest_bytes
from exclave.base.json_values import JsonObject, object_or_empty, parse_object
from exclave.client.oci.documents import (
    INDEX,
    MANIFEST,
    Descriptor,
    Index,
    Manifest,
    read_document,
)
from exclave.client.oci.manifests import DOCKER_INDEX, DOCKER_MANIFEST, FetchedManifest
from exclave.client.oci.repository import OciRepository
from exclave.runner.kube.changes.parallel import run_all
from exclave.runner.outcomes import WorkFailed
from exclave.wire.jobs import Reason

_MOST_LEVELS = 3
"""How deep indexes contain indexes, and referrers have referrers of their own."""
_MOST_MANIFESTS = 1000
_MOST_BYTES = 64 << 20
_FOREIGN = ("foreign.diff", "layer.nondistributable")
"""Parts of the types of layers that registries do not store: they are hosted elsewhere."""


@dataclass(frozen=True, slots=True)
class ImageNode:
    """A manifest or an index, with everything that it is made of and that refers to it."""

    digest: str
    media_type: str
    data: bytes
    blobs: tuple[Descriptor, ...] = ()
    children: tuple["ImageNode", ...] = ()
    referrers: tuple["ImageNode", ...] = ()
    platform: str = ""
    """Set in an index: the machine that this child is for."""

    @property
    def size(self) -> int:
        """The bytes of all distinct blobs of the image, without its referrers."""
        return sum(blob.size for blob in {blob.digest: blob for blob in self.list_blobs()}.values())

    @property
    def platforms(self) -> list[str]:
        """The machines that an index has manifests for."""
        named = {child.platform for child in self.children}
        return sorted(named - {"", "unknown/unknown"})

    def list_blobs(self) -> list[Descriptor]:
        """Return the blobs of the manifest and of all children."""
        return [*self.blobs, *(blob for child in self.children for blob in child.list_blobs())]


async def read_graph(
    source: OciRepository, digest: str, *, platforms: Sequence[str] = ()
) -> ImageNode:
    """Read the graph of an image by its digest; with platforms, only of the variants for these."""
    reader = _GraphReader(source)
    root = await reader.read(digest)
    chosen = root if not platforms else _choose(root, platforms)
    return await reader.add_referrers(chosen)


class _GraphReader:
    """Reads manifests of one repository, a limited number of them."""

    def __init__(self, source: OciRepository) -> None:
        self._source = source
        self._manifests = 0
        self._bytes = 0

    async def read(self, digest: str, level: int = 0, platform: str = "") -> ImageNode:
        """Read a manifest and its children."""
        fetched = await self._fetch(digest)
        document = parse_object(fetched.data, f"manifest {digest}")
        node = ImageNode(digest, _find_type(fetched, document), fetched.data, platform=platform)
        if "manifests" not in document:
            return replace(node, blobs=_list_blobs(read_document(Manifest, fetched.data)))
        if level >= _MOST_LEVELS:
            _refuse(f"{digest}: indexes contain indexes, more than {_MOST_LEVELS} levels deep")
        listed = read_document(Index, fetched.data).manifests

        async def read_child(child: Descriptor) -> ImageNode:
            platform = "" if child.platform is None else child.platform.write()
            return await self.read(child.digest, level + 1, platform)

        return replace(node, children=tuple(await run_all(listed, read_child)))

    async def add_referrers(self, node: ImageNode, level: int = 0) -> ImageNode:
        """Return the node with the referrers of it and of its children."""
        if level >= _MOST_LEVELS:
            return node
        listing = asyncio.create_task(self._source.list_referrers(node.digest))
        try:
            children = await run_all(node.children, lambda child: self.add_referrers(child, level))
            listed = await listing
        finally:
            listing.cancel()
        referrers = []
        for entry in listed:
            referrer = await self.read(entry.digest)
            if _get_subject(referrer) == node.digest:
                referrers.append(await self.add_referrers(referrer, level + 1))
        return replace(node, children=tuple(children), referrers=tuple(referrers))

    async def _fetch(self, digest: str) -> FetchedManifest:
        self._manifests += 1
        fetched = await self._source.fetch_manifest(digest)
        self._bytes += len(fetched.data)
        if self._manifests > _MOST_MANIFESTS or self._bytes > _MOST_BYTES:
            _refuse(f"the image has more than {_MOST_MANIFESTS} manifests or {_MOST_BYTES} bytes")
        # A large graph is read without keeping the event loop from others.
        await asyncio.sleep(0)
        return fetched


def _choose(root: ImageNode, platforms: Sequence[str]) -> ImageNode:
    """Return the variants of an image for these platforms.

    One variant is a manifest of its own. Several get a new index, because registries refuse an
    index whose children are missing.
    """
    if not root.children:
        return root
    chosen = tuple(
        child
        for child in root.children
        if any(
            child.platform == name or child.platform.startswith(f"{name}/") for name in platforms
        )
    )
    missing = [
        name
        for name in platforms
        if not any(f"{child.platform}/".startswith(f"{name}/") for child in chosen)
    ]
    if missing:
        has = ", ".join(root.platforms) or "none"
        message = f"the image has no variant for `{missing[0]}`; it has: {has}"
        raise WorkFailed(Reason.SOURCE_INVALID, message)
    if len(chosen) == 1:
        return replace(chosen[0], platform="")
    digests = {child.digest for child in chosen}
    document = dict(parse_object(root.data, "the index"))
    listed = document["manifests"]
    assert isinstance(listed, list)  # noqa: S101 - it was read as an index
    document["manifests"] = [
        item for item in listed if object_or_empty(item).get("digest") in digests
    ]
    data = canonical_json(document)
    return ImageNode(digest_bytes(data), root.media_type, data, children=chosen)


def _find_type(fetched: FetchedManifest, document: JsonObject) -> str:
    """Return the media type of a manifest; refuse one of a format that is not copied."""
    named = document.get("mediaType")
    media_type = named if isinstance(named, str) and named else fetched.media_type
    if media_type in {MANIFEST, INDEX, DOCKER_MANIFEST, DOCKER_INDEX}:
        return media_type
    if document.get("schemaVersion") == 1:
        _refuse(f"{fetched.digest} has the old Docker format of 2015: push the image again")
    if named:
        _refuse(f"{fetched.digest} is a `{media_type}`, which is not an image")
    return INDEX if "manifests" in document else MANIFEST


def _list_blobs(manifest: Manifest) -> tuple[Descriptor, ...]:
    """Return the blobs of a manifest, without foreign layers, which no registry stores."""
    layers = [
        layer
        for layer in manifest.layers
        if not (layer.urls and any(part in layer.mediaType for part in _FOREIGN))
    ]
    return (manifest.config, *layers)


def _get_subject(node: ImageNode) -> object:
    return object_or_empty(parse_object(node.data, "the referrer").get("subject")).get("digest")


def _refuse(message: str) -> NoReturn:
    raise WorkFailed(Reason.SOURCE_INVALID, message)
