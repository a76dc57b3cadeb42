"""Downloads of blobs: streamed, verified, and resumed after an interruption."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from pathlib import Path

import httpx

from exclave.base.digests import ContentHash, start_hash, write_digest
from exclave.base.errors import Problem
from exclave.client.oci.calls import OciCalls
from exclave.client.oci.documents import CorruptContent, Descriptor
from exclave.client.problems import Unreachable
from exclave.client.retry import NoteRetry

_PIECE = 1 << 20
"""Small parts of an answer are joined to pieces of this size, which are hashed in a thread."""
_MOST_MARKS = 64
NoteArrived = Callable[[int], None]
"""Called with the number of bytes of a blob that have arrived so far."""


async def pull_blob(calls: OciCalls, repository: str, blob: Descriptor, target: Path) -> None:
    """Download a blob to a file, which is created once its content is complete and verified."""
    part = target.with_name(f"{target.name}.part")
    try:
        with part.open("wb") as out:
            async with aclosing(BlobContent(calls, repository, blob)) as content:
                async for piece in content.read():
                    await asyncio.to_thread(out.write, piece)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


class BlobContent:
    """The content of a blob, read from any offset on; its end is handed out only if verified.

    What was read once can be read again from an offset: the hashes of some beginnings are kept, so
    that at most a small part before the offset is downloaded again.
    """

    def __init__(
        self,
        calls: OciCalls,
        repository: str,
        blob: Descriptor,
        *,
        note_arrived: NoteArrived | None = None,
        note_retry: NoteRetry | None = None,
    ) -> None:
        self._calls = calls
        self._repository = repository
        self._path = calls.path(repository, f"blobs/{blob.digest}")
        self._blob = blob
        self._marks: list[tuple[int, ContentHash]] = [(0, start_hash(blob.digest))]
        self._mark_every = max(_PIECE, blob.size // _MOST_MARKS)
        self._note_arrived = note_arrived
        self._note_retry = note_retry
        self._opened: list[AsyncGenerator[bytes, None]] = []

    def read(self, start: int = 0) -> AsyncIterator[bytes]:
        """Return the content from an offset on; a download that breaks goes on where it was."""
        pieces = self._read(start)
        self._opened.append(pieces)
        return pieces

    async def aclose(self) -> None:
        """Close the connections of what was not read to its end."""
        while self._opened:
            await self._opened.pop().aclose()

    async def _read(self, start: int) -> AsyncGenerator[bytes, None]:
        at, hashed = self._find_mark(start)
        attempts = self._calls.begin_attempts(self._note_retry)
        if self._blob.size == 0:
            self._check(hashed)
        while at < self._blob.size:
            try:
                async with aclosing(self._request(at)) as pieces:
                    async for piece in pieces:
                        await asyncio.to_thread(hashed.update, piece)
                        at += len(piece)
                        self._note(at, hashed)
                        attempts.note_progress()
                        if at > start:
                            yield piece[max(0, start - at + len(piece)) :]
            except Problem as problem:
                await attempts.pause(problem)

    async def _request(self, start: int) -> AsyncGenerator[bytes, None]:
        """Yield what one answer has of the content from an offset on."""
        headers = {"Range": f"bytes={start}-"} if start else {}
        async with self._calls.open("GET", self._path, self._repository, headers) as reply:
            is_partial = reply.status_code == httpx.codes.PARTIAL_CONTENT
            at = start if is_partial else 0
            async for piece in _join(reply.aiter_raw()):
                at += len(piece)
                if at > self._blob.size:
                    raise CorruptContent(f"{self._path} is larger than announced")
                if at > start:
                    yield piece[max(0, start - at + len(piece)) :]
        if at < self._blob.size:
            raise Unreachable(f"{self._path} ended after {at} of {self._blob.size} bytes")

    def _note(self, at: int, hashed: ContentHash) -> None:
        if self._note_arrived is not None:
            self._note_arrived(at)
        if at == self._blob.size:
            self._check(hashed)
        elif at >= self._marks[-1][0] + self._mark_every:
            self._marks.append((at, hashed.copy()))

    def _find_mark(self, start: int) -> tuple[int, ContentHash]:
        """Return the last mark that is not after an offset; later ones are forgotten."""
        while self._marks[-1][0] > start:
            self._marks.pop()
        at, hashed = self._marks[-1]
        return at, hashed.copy()

    def _check(self, hashed: ContentHash) -> None:
        """Raise if the content does not match its digest."""
        if write_digest(self._blob.digest, hashed) != self._blob.digest:
            raise CorruptContent(f"the registry sent something else than {self._blob.digest}")


async def _join(parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the content in larger pieces."""
    held: list[bytes] = []
    size = 0
    async for part in parts:
        held.append(part)
        size += len(part)
        if size >= _PIECE:
            yield b"".join(held)
            held.clear()
            size = 0
    if held:
        yield b"".join(held)
