"""Layers of a component's builds: read from the org's registry, and kept there for the next one."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from exclave.base.errors import Problem
from exclave.client.oci.documents import MANIFEST, Descriptor, Manifest, read_document
from exclave.client.oci.downloads import BlobContent
from exclave.client.oci.manifests import FetchedManifest
from exclave.client.oci.repository import OciRepository
from exclave.client.problems import RemoteProblem

MOST_BYTES: Final = 8 << 30
"""How much one build may add; what comes later is not kept."""
_SAVE_WITHIN_S: Final = 300.0
_NOT_FOUND: Final = 404
_OCTETS: Final = "application/octet-stream"


@dataclass(slots=True)
class Arriving:
    """A layer that buildah is handing over."""

    file: Path
    size: int = 0
    hashed: "hashlib._Hash" = field(default_factory=hashlib.sha256)


@dataclass(slots=True)
class LayerStore:
    """What one build reads and adds. Nothing is sent before the build has succeeded.

    A cache that cannot be read is empty, and one that cannot be written is left as it is.
    """

    repository: OciRepository
    folder: Path
    say: Callable[[str], None]
    most_bytes: int = MOST_BYTES
    reused: int = 0
    """How many layers came from the registry."""
    _added: dict[str, FetchedManifest] = field(default_factory=dict)
    _sizes: dict[str, int] = field(default_factory=dict)
    _dropped: set[str] = field(default_factory=set)
    _damaged: set[str] = field(default_factory=set)
    _bytes: int = 0
    _is_broken: bool = False

    async def find_manifest(self, reference: str) -> FetchedManifest | None:
        """Return a manifest that was added or that an earlier build has kept."""
        if reference in self._added:
            return self._added[reference]
        if self._is_broken:
            return None
        try:
            return await self.repository.fetch_manifest(reference)
        except Problem as problem:
            self._note(problem)
            return None

    async def find_size(self, digest: str) -> int | None:
        """Return the size of a blob; None if there is none."""
        if digest in self._sizes:
            return self._sizes[digest]
        if self._is_broken or digest in self._damaged:
            return None
        try:
            return await self.repository.find_blob_size(digest)
        except Problem as problem:
            self._note(problem)
            return None

    async def read(self, digest: str, size: int) -> AsyncIterator[bytes]:
        """Yield a blob of an earlier build; one that is damaged raises before its end."""
        blob = Descriptor(mediaType=_OCTETS, digest=digest, size=size)
        content = BlobContent(self.repository.calls, self.repository.path, blob)
        try:
            async with aclosing(content):
                async for piece in content.read():
                    yield piece
        except Problem as problem:
            self._damaged.add(digest)
            self.say(f"a cached layer is not used: {problem.message}")
            raise
        self.reused += 1

    def begin(self, name: str) -> Arriving:
        """Return a new layer to be written."""
        return Arriving(self.folder / f"{name}.part")

    def write(self, arriving: Arriving, piece: bytes) -> None:
        """Append to a layer; what is more than a build may keep is only counted."""
        arriving.hashed.update(piece)
        arriving.size += len(piece)
        self._bytes += len(piece)
        if self._bytes <= self.most_bytes:
            with arriving.file.open("ab") as out:
                out.write(piece)

    def end(self, arriving: Arriving, digest: str) -> bool:
        """Add a layer that has arrived; return whether it is what its digest names."""
        if f"sha256:{arriving.hashed.hexdigest()}" != digest:
            arriving.file.unlink(missing_ok=True)
            return False
        self._sizes[digest] = arriving.size
        if self._bytes > self.most_bytes:
            self._dropped.add(digest)
            arriving.file.unlink(missing_ok=True)
        elif arriving.size:
            arriving.file.replace(self._find_file(digest))
        else:
            self._find_file(digest).touch()
        return True

    def add_manifest(self, tag: str, manifest: FetchedManifest) -> None:
        """Add the image of an instruction under its key."""
        self._added[tag] = manifest
        self._added[manifest.digest] = manifest

    def drop(self) -> None:
        """Forget what was added, and free its space."""
        self._added.clear()
        self._sizes.clear()
        for file in self.folder.iterdir():
            file.unlink()

    async def save(self) -> None:
        """Keep what was added in the org's registry; a failure makes only the next build slower."""
        try:
            async with asyncio.timeout(_SAVE_WITHIN_S):
                saved = await self._save()
        except (Problem, TimeoutError) as problem:
            why = problem.message if isinstance(problem, Problem) else "it takes too long"
            self.say(f"layers are not kept for the next build: {why}")
        else:
            self.say(f"layers: {self.reused} taken from the cache, {saved} kept for the next build")

    async def _save(self) -> int:
        saved: set[str] = set()
        for reference, fetched in self._added.items():
            manifest = read_document(Manifest, fetched.data)
            blobs = (manifest.config, *manifest.layers)
            if ":" in reference or any(blob.digest in self._dropped for blob in blobs):
                continue
            for blob in blobs:
                if blob.digest in self._sizes and blob.digest not in saved:
                    await self._save_blob(blob)
                    saved.add(blob.digest)
            await self.repository.put_manifest(
                fetched.data, media_type=fetched.media_type or MANIFEST, reference=reference
            )
        return len(saved)

    async def _save_blob(self, blob: Descriptor) -> None:
        if blob.digest in self._damaged or not await self.repository.has_blob(blob.digest):
            await self.repository.push_blob(blob, self._find_file(blob.digest))

    def _find_file(self, digest: str) -> Path:
        return self.folder / digest.removeprefix("sha256:")

    def _note(self, problem: Problem) -> None:
        """Read nothing more from a registry that fails; a missing layer is no failure."""
        if isinstance(problem, RemoteProblem) and problem.status == _NOT_FOUND:
            return
        self._is_broken = True
        self.say(f"the layer cache cannot be read, so all is built: {problem.message}")
