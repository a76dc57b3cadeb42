"""Blobs in memory: the twin of the real stores for tests that need no disk."""

from collections import Counter

from exclave.storage.blobs.base import check_folder, check_key, clashing_key, missing_blob


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

    async def get(self, key: str) -> bytes:
        """Read a blob; a missing one is `NotFound`."""
        try:
            return self._blobs[check_key(key)]
        except KeyError:
            raise missing_blob(key) from None

    async def delete(self, key: str) -> None:
        """Remove a blob; a missing one is fine."""
        if self._blobs.pop(check_key(key), None) is not None:
            self._folders.subtract(_list_folders(key))

    async def list_keys(self, folder: str = "") -> list[str]:
        """Tell the keys below a folder, sorted."""
        below = f"{folder}/" if check_folder(folder) else ""
        return sorted(key for key in self._blobs if key.startswith(below))

    async def close(self) -> None:
        """Nothing to let go of."""


def _list_folders(key: str) -> list[str]:
    parts = key.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts))]
