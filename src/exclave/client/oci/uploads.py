"""Uploads of blobs: streamed, and resumed after an interruption."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import httpx

from exclave.base.errors import Problem
from exclave.client.oci.calls import Content, OciCalls
from exclave.client.oci.documents import read_end, read_location
from exclave.client.problems import RemoteProblem
from exclave.client.retry import NoteRetry

Source = bytes | Path
ReadFrom = Callable[[int], Content]
"""Returns the content from an offset on."""

_CHUNK = 1 << 20
SMALL = 4 << 20
"""Blobs up to this size are uploaded in one request; larger uploads can be resumed."""
_OCTETS = {"Content-Type": "application/octet-stream"}
_GONE = frozenset({404, 416})


def hash_file(file: Path) -> tuple[str, int]:
    """Return the digest and the size of a file."""
    with file.open("rb") as data:
        digest = hashlib.file_digest(data, "sha256").hexdigest()
        return f"sha256:{digest}", data.tell()


async def push_blob(
    calls: OciCalls,
    repository: str,
    source: Source,
    digest: str,
    size: int,
    *,
    is_missing: bool = False,
) -> None:
    """Store a blob in a repository, unless it is there; `is_missing` says that it is not."""
    path = calls.path(repository, f"blobs/{digest}")
    if not is_missing and await calls.repeat(lambda: _is_there(calls, path, repository)):
        return
    await Upload(calls, repository, digest, size, _read_source(source)).run()


async def _is_there(calls: OciCalls, path: str, repository: str) -> bool:
    try:
        await calls.send("HEAD", path, repository)
    except RemoteProblem as problem:
        if problem.status != httpx.codes.NOT_FOUND:
            raise
        return False
    return True


@dataclass(slots=True)
class Upload:
    """One upload, in as many requests as it needs."""

    calls: OciCalls
    repository: str
    digest: str
    size: int
    read_from: ReadFrom
    give_back: Callable[[], Awaitable[None]] | None = None
    """Awaited after a request that failed: it may not have read its content to the end."""
    note_retry: NoteRetry | None = None
    location: str = ""
    arrived: int = 0

    async def run(self) -> None:
        """Upload; go on after interruptions as long as something arrives in between."""
        attempts = self.calls.begin_attempts(self.note_retry)
        while True:
            before = self.arrived
            try:
                await self._go_on()
            except Problem as problem:
                if self.give_back is not None:
                    await self.give_back()
                if self.arrived > before:
                    attempts.note_progress()
                await attempts.pause(problem)
            else:
                return

    async def _go_on(self) -> None:
        """Start the upload, or resume it; a small blob is always sent as a whole."""
        if self.size <= SMALL:
            await self._begin()
            await self._put(self.read_from(0), self.size)
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
            "PATCH", self.location, self.repository, headers, self.read_from(self.arrived)
        )
        self.location, self.arrived = read_location(reply), self.size

    async def _put(self, content: Content = bytes, size: int = 0) -> None:
        url = str(httpx.URL(self.location).copy_merge_params({"digest": self.digest}))
        headers = {**_OCTETS, "Content-Length": str(size)}
        await self.calls.send("PUT", url, self.repository, headers, content)


def _read_source(source: Source) -> ReadFrom:
    def read_from(start: int) -> Content:
        return (lambda: source[start:]) if isinstance(source, bytes) else _reading(source, start)

    return read_from


def _reading(file: Path, start: int) -> Content:
    async def read() -> AsyncIterator[bytes]:
        with file.open("rb") as data:
            data.seek(start)
            while chunk := await asyncio.to_thread(data.read, _CHUNK):
                yield chunk

    return read
