"""Streams into the blob store: counted, hashed, and limited in length."""

import hashlib
from collections.abc import AsyncIterable, AsyncIterator

from exclave.base.errors import TooLarge


class Measured:
    """Passes the pieces of a stream on, and computes their total size and digest."""

    def __init__(self, chunks: AsyncIterable[bytes], most: int) -> None:
        self._chunks = chunks
        self._most = most
        self._hash = hashlib.sha256()
        self.size = 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Yield the pieces."""
        async for chunk in self._chunks:
            self.size += len(chunk)
            if self.size > self._most:
                raise TooLarge(f"there are more than {self._most} bytes", limit=self._most)
            self._hash.update(chunk)
            yield chunk

    @property
    def digest(self) -> str:
        """The digest of all pieces so far."""
        return f"sha256:{self._hash.hexdigest()}"


async def stream_bytes(data: bytes) -> AsyncIterator[bytes]:
    """Return a stream of bytes that are in memory."""
    yield data
