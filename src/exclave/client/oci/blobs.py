"""Upload and download of blobs: streamed, verified, and resumed after an interruption."""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import httpx

from exclave.base.digests import start_hash, write_digest
from exclave.client.oci.calls import Content, OciCalls
from exclave.client.oci.documents import CorruptContent, Descriptor, read_end, read_location
from exclave.client.problems import RemoteProblem, Unreachable

Source = bytes | Path

_CHUNK = 1 << 20
_SMALL = 4 << 20
"""Blobs up to this size are uploaded in one request; larger uploads can be resumed."""
_OCTETS = {"Content-Type": "application/octet-stream"}
_GONE = frozenset({404, 416})


def hash_file(file: Path) -> tuple[str, int]:
    """Return the digest and the size of a file."""
    with file.open("rb") as data:
        digest = hashlib.file_digest(data, "sha256").hexdigest()
        return f"sha256:{digest}", data.tell()


async def push_blob(
    calls: OciCalls, repository: str, source: Source, digest: str, size: int
) -> None:
    """Store a blob in a repository, unless it is there already."""
    path = calls.path(repository, f"blobs/{digest}")
    if await calls.repeat(lambda: _is_there(calls, path, repository)):
        return
    upload = _Upload(calls, repository, source, digest, size)
    await calls.repeat(upload.go_on)


async def pull_blob(calls: OciCalls, repository: str, blob: Descriptor, target: Path) -> None:
    """Download a blob to a file, which is created once its content is complete and verified."""
    part = target.with_name(f"{target.name}.part")
    try:
        with part.open("wb") as out:
            download = _Download(calls, repository, blob, out)
            await calls.repeat(download.go_on)
            download.check()
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


async def _is_there(calls: OciCalls, path: str, repository: str) -> bool:
    try:
        await calls.send("HEAD", path, repository)
    except RemoteProblem as problem:
        if problem.status != httpx.codes.NOT_FOUND:
            raise
        return False
    return True


@dataclass(slots=True)
class _Upload:
    """One upload, in as many requests as it needs."""

    calls: OciCalls
    repository: str
    source: Source
    digest: str
    size: int
    location: str = ""
    arrived: int = 0

    async def go_on(self) -> None:
        """Start the upload, or resume it; a small blob is always sent as a whole."""
        if self.size <= _SMALL:
            await self._begin()
            await self._put(self._read_from(0), self.size)
            return
        if self.location:
            await self._ask()
        if not self.location:
            await self._begin()
        await self._send_rest()
        await self._put()

    async def _begin(self) -> None:
        path = self.calls.path(self.repository, "blobs/uploads/")
        reply = await self.calls.send("POST", path, self.repository)
        self.location, self.arrived = read_location(reply), 0

    async def _ask(self) -> None:
        try:
            reply = await self.calls.send("GET", self.location, self.repository)
        except RemoteProblem as problem:
            if problem.status not in _GONE:
                raise
            self.location = ""
        else:
            self.location, self.arrived = read_location(reply), read_end(reply)
            # A new upload reports 0-0, like one with a single byte: start over in that case.
            if self.arrived <= 1 or self.arrived > self.size:
                self.location = ""

    async def _send_rest(self) -> None:
        if self.arrived >= self.size:
            return
        headers = {
            **_OCTETS,
            "Content-Length": str(self.size - self.arrived),
            # Also at the start: a copy of this request that arrives late must not be appended.
            "Content-Range": f"{self.arrived}-{self.size - 1}",
        }
        reply = await self.calls.send(
            "PATCH", self.location, self.repository, headers, self._read_from(self.arrived)
        )
        self.location, self.arrived = read_location(reply), self.size

    async def _put(self, content: Content = bytes, size: int = 0) -> None:
        url = str(httpx.URL(self.location).copy_merge_params({"digest": self.digest}))
        headers = {**_OCTETS, "Content-Length": str(size)}
        await self.calls.send("PUT", url, self.repository, headers, content)

    def _read_from(self, start: int) -> Content:
        source = self.source
        return (lambda: source[start:]) if isinstance(source, bytes) else _reading(source, start)


def _reading(file: Path, start: int) -> Content:
    async def read() -> AsyncIterator[bytes]:
        with file.open("rb") as data:
            data.seek(start)
            while chunk := await asyncio.to_thread(data.read, _CHUNK):
                yield chunk

    return read


class _Download:
    """One download, in as many requests as it needs."""

    def __init__(self, calls: OciCalls, repository: str, blob: Descriptor, out: BinaryIO) -> None:
        self._calls = calls
        self._repository = repository
        self._blob = blob
        self._out = out
        self._hash = start_hash(blob.digest)
        self._arrived = 0

    async def go_on(self) -> None:
        """Start the download, or resume it where the last attempt ended."""
        path = self._calls.path(self._repository, f"blobs/{self._blob.digest}")
        headers = {"Range": f"bytes={self._arrived}-"} if self._arrived else {}
        async with self._calls.open("GET", path, self._repository, headers) as reply:
            if reply.status_code != httpx.codes.PARTIAL_CONTENT:
                self._begin_anew()
            async for chunk in reply.aiter_raw(_CHUNK):
                self._hash.update(chunk)
                self._arrived += len(chunk)
                if self._arrived > self._blob.size:
                    raise CorruptContent(f"{path} is larger than announced")
                await asyncio.to_thread(self._out.write, chunk)
        if self._arrived < self._blob.size:
            raise Unreachable(f"{path} ended after {self._arrived} of {self._blob.size} bytes")

    def check(self) -> None:
        """Raise if the content does not match its digest."""
        if write_digest(self._blob.digest, self._hash) != self._blob.digest:
            raise CorruptContent(f"the registry sent something else than {self._blob.digest}")

    def _begin_anew(self) -> None:
        self._hash = start_hash(self._blob.digest)
        self._arrived = 0
        self._out.seek(0)
        self._out.truncate()
