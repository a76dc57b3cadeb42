"""Copies an image between registries: only what is missing, by digest, with its referrers."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from exclave.base.clock import Clock
from exclave.base.errors import Problem
from exclave.client.oci.documents import Descriptor
from exclave.client.oci.repository import OciRepository
from exclave.client.problems import RemoteProblem
from exclave.runner.images.graph import ImageNode
from exclave.runner.kube.changes.parallel import run_all

_AT_ONCE = 4
"""How many blobs are transferred at a time; a few megabytes of each are in memory."""
_TELL_EVERY_S = 10.0
"""How often a large blob that is on its way is mentioned in the log."""
_INCOMPLETE = frozenset({"manifest_blob_unknown", "manifest_unknown", "blob_unknown"})
"""How a registry refuses a manifest because it lacks a part of it."""

Say = Callable[[str], None]


@dataclass(slots=True)
class CopyTally:
    """What a copy has found and moved."""

    blobs: int = 0
    size: int = 0
    """Of all blobs, in bytes."""
    moved: int = 0
    moved_size: int = 0
    mounted: int = 0
    manifests: int = 0
    """How many manifests were stored."""

    def describe(self) -> str:
        """Return the totals as one line."""
        there = self.blobs - self.moved - self.mounted
        mounted = f", {self.mounted} taken from another repository" if self.mounted else ""
        return (
            f"{self.moved} of {self.blobs} blobs, {write_size(self.moved_size)} of"
            f" {write_size(self.size)} copied; {there} there already{mounted}"
        )


@dataclass(slots=True)
class _BlobProgress:
    """The lines about one blob in the log: while it takes long, and when it is interrupted."""

    blob: Descriptor
    say: Say
    clock: Clock
    told_at: float
    arrived: int = 0

    def note_arrived(self, size: int) -> None:
        self.arrived = size
        if self.clock.monotonic() - self.told_at >= _TELL_EVERY_S:
            self.told_at = self.clock.monotonic()
            self.say(f"{self._describe()} so far")

    def note_retry(self, problem: Problem, pause_s: float) -> None:
        self.say(f"{self._describe()}: {problem.message}; going on in {pause_s:.1f} s")

    def _describe(self) -> str:
        shown = write_size(self.arrived)
        return f"{self.blob.digest[:19]} {shown} of {write_size(self.blob.size)}"


class _PartMissingError(Exception):
    """The target refused a manifest because it lacks a part that it claimed to have."""

    def __init__(self, problem: RemoteProblem) -> None:
        super().__init__(problem.message)
        self.problem = problem


@dataclass(slots=True)
class ImageCopy:
    """One copy of an image."""

    source: OciRepository
    target: OciRepository
    say: Say
    clock: Clock
    tally: CopyTally = field(default_factory=CopyTally)
    _slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE))
    _blobs: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    _trusts_heads: bool = True
    _mounts: bool = False

    async def run(self, image: ImageNode, tag: str = "") -> CopyTally:
        """Copy an image whose graph was read from the source, and let a tag point to it."""
        self._count(image)
        self._mounts = self.source.registry == self.target.registry
        try:
            try:
                await self._copy(image)
            except _PartMissingError as missing:
                # Some registries answer HEAD for a child that they do not have any more.
                self.say(f"{missing.problem.message}: everything is looked at again")
                self._trusts_heads = False
                await self._cancel()
                await self._copy(image)
        finally:
            await self._cancel()
        if tag and await self.target.find_tag(tag) != image.digest:
            await self.target.put_manifest(image.data, media_type=image.media_type, reference=tag)
        self.say(self.tally.describe())
        return self.tally

    async def _copy(self, node: ImageNode) -> None:
        """Copy a manifest after its children and blobs, then what refers to it."""
        if not (self._trusts_heads and await self.target.has_manifest(node.digest)):
            await run_all(node.children, self._copy)
            # The largest first: the last one to end has the line to itself.
            blobs = sorted(node.blobs, key=lambda blob: -blob.size)
            await asyncio.gather(*(self._request(blob) for blob in blobs))
            await self._put(node)
        else:
            for child in node.children:
                await self._copy_referrers(child)
        await self._copy_referrers(node, deep=False)

    async def _put(self, node: ImageNode) -> None:
        try:
            await self.target.put_manifest(
                node.data, media_type=node.media_type, reference=node.digest
            )
        except RemoteProblem as problem:
            if self._trusts_heads and problem.code in _INCOMPLETE:
                raise _PartMissingError(problem) from problem
            raise
        self.tally.manifests += 1

    async def _copy_referrers(self, node: ImageNode, *, deep: bool = True) -> None:
        for child in node.children if deep else ():
            await self._copy_referrers(child)
        # One after the other: where a registry keeps no list, they share one under a tag.
        for referrer in node.referrers:
            await self._copy(referrer)

    async def _request(self, blob: Descriptor) -> None:
        """Wait for a blob, which is copied once even if several manifests name it."""
        if blob.digest not in self._blobs:
            self._blobs[blob.digest] = asyncio.create_task(self._copy_blob(blob))
        await self._blobs[blob.digest]

    async def _copy_blob(self, blob: Descriptor) -> None:
        async with self._slots:
            if await self.target.has_blob(blob.digest):
                return
            if await self._mount(blob):
                self.tally.mounted += 1
                return
            progress = _BlobProgress(blob, self.say, self.clock, self.clock.monotonic())
            await self.target.copy_blob(blob, self.source, progress)
            self.tally.moved += 1
            self.tally.moved_size += blob.size
            self.say(f"{blob.digest[:19]} {write_size(blob.size)} ({self._describe_progress()})")

    async def _mount(self, blob: Descriptor) -> bool:
        """Mount a blob of the source's repository, if both are in one registry that allows it."""
        if self._mounts:
            self._mounts = await self.target.mount_blob(blob.digest, self.source.name)
        return self._mounts

    async def _cancel(self) -> None:
        tasks = list(self._blobs.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._blobs.clear()

    def _count(self, image: ImageNode) -> None:
        blobs = {blob.digest: blob for blob in _list_all_blobs(image)}
        self.tally.blobs = len(blobs)
        self.tally.size = sum(blob.size for blob in blobs.values())

    def _describe_progress(self) -> str:
        tally = self.tally
        return (
            f"{tally.moved} of {tally.blobs} blobs,"
            f" {write_size(tally.moved_size)} of {write_size(tally.size)}"
        )


def write_size(size: int) -> str:
    """Return a number of bytes as people read it."""
    for unit, factor in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return f"{size} B"


def _list_all_blobs(node: ImageNode) -> list[Descriptor]:
    inner = [*node.children, *node.referrers]
    return [*node.blobs, *(blob for part in inner for blob in _list_all_blobs(part))]
