"""Blobs in memory, for tests that need no disk."""

from collections import Counter
from collections.abc import AsyncIterable, AsyncIterator

from exclave.storage.blobs.base import CHUNK, check_folder, check_key, clashing_key, missing_blob


class MemoryBlobs:
    """Keeps every blob in a dictionary; lost with the process."""

    def __init__(self) -> None:
        self._blobs: dict[str, bytes] = {}
        self._folders: Counter[str] = Counter()

    async def put(self, key: str, data: bytes) -> None:
        """Store a copy of the bytes."""
        folders = _list_folders(check_key(key))
        if self._folders[key] or any(folder in self._blobs for folder in folders):
            raise clashing_key(key)
        if key not in self._blobs:
            self._folders.update(folders)
        self._blobs[key] = bytes(data)

    async def put_stream(self, key: str, chunks: AsyncIterable[bytes]) -> None:
        """Store what comes piece by piece."""
        check_key(key)
        await self.put(key, b"".join([bytes(chunk) async for chunk in chunks]))

    async def get(self, key: str) -> bytes:
        """Read a blob; a missing one is `NotFound`."""
        try:
            return self._blobs[check_key(key)]
        except KeyError:
            raise missing_blob(key) from None

    async def read(self, key: str, start: int = 0, size: int | None = None) -> AsyncIterator[bytes]:
        """Read a blob, or a part of it, piece by piece."""
        data = await self.get(key)
        end = len(data) if size is None else min(len(data), start + size)
        for at in range(start, end, CHUNK):
            yield data[at : min(at + CHUNK, end)]

    async def delete(self, key: str) -> None:
        """Remove a blob; a missing one is fine."""
        if self._blobs.pop(check_key(key), None) is not None:
            self._folders.subtract(_list_folders(key))

    async def list_keys(self, folder: str = "") -> list[str]:
        """List the keys below a folder, sorted."""
        below = f"{folder}/" if check_folder(folder) else ""
        return sorted(key for key in self._blobs if key.startswith(below))

    async def close(self) -> None:
        """Nothing to let go of."""


def _list_folders(key: str) -> list[str]:
    parts = key.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts))]
