"""The blob store interface, and the one rule for keys that every store obeys."""

import re
from collections.abc import AsyncIterable, AsyncIterator
from typing import Protocol

from exclave.base.errors import InvalidInput, NotFound
from exclave.base.logs import Log

log = Log("blobs")

MAX_KEY = 512
CHUNK = 1 << 20
"""How much of a stream is written or read at once."""
MAX_SEGMENT = 200
"""Most characters between two slashes: a segment is a file name, and file systems stop at 255."""

_KEY = re.compile(r"[a-z0-9._-]+(/[a-z0-9._-]+)*")


class Blobs(Protocol):
    """Bytes under keys such as `logs/exe_01k9/000001.zst`.

    A key is never also the folder of another key: with `a` stored, `a/b` cannot be. Stores that
    can see it refuse with `InvalidInput`; S3 does not look, so callers must keep to it.
    Whatever keeps a store from answering is raised as `Unavailable`.
    """

    async def put(self, key: str, data: bytes) -> None:
        """Store the bytes: all of them or none, and durably once this returns.

        Storing again under the same key replaces what was there, at once for every reader.
        """
        ...

    async def put_stream(self, key: str, chunks: AsyncIterable[bytes]) -> None:
        """Store what comes piece by piece, like `put`, with only a few MiB of it in memory.

        Whatever `chunks` raises is raised again, and then nothing is stored.
        """
        ...

    async def get(self, key: str) -> bytes:
        """Read a blob; a missing one is `NotFound`."""
        ...

    def read(self, key: str, start: int = 0, size: int | None = None) -> AsyncIterator[bytes]:
        """Read a blob, or `size` bytes of it from `start`, piece by piece.

        A missing one is `NotFound` at the first piece; what lies beyond the end is not there.
        """
        ...

    async def delete(self, key: str) -> None:
        """Remove a blob; a missing one is fine."""
        ...

    async def list_keys(self, folder: str = "") -> list[str]:
        """List the keys below a folder (`a/b` finds `a/b/c`, not `a/bc`), sorted; "" means all."""
        ...

    async def close(self) -> None:
        """Close threads and connections; the store is not used afterwards."""
        ...


def is_key(text: str) -> bool:
    """Return whether the text is a valid key in every store."""
    if len(text) > MAX_KEY or _KEY.fullmatch(text) is None:
        return False
    return all(len(part) <= MAX_SEGMENT and part not in {".", ".."} for part in text.split("/"))


def check_key(key: str) -> str:
    """Pass a good key on; refuse any other."""
    if not is_key(key):
        raise InvalidInput(
            f"{key[:80]!r} cannot be the key of a blob",
            hint="Use a-z, 0-9, `.`, `_` and `-`, split by `/`, and 512 characters at most.",
        )
    return key


def check_folder(folder: str) -> str:
    """Pass a good folder on; it reads like a key, or is empty for everything."""
    return check_key(folder) if folder else ""


async def regroup(chunks: AsyncIterable[bytes], size: int = CHUNK) -> AsyncIterator[bytes]:
    """Make few large pieces of many small ones."""
    held: list[bytes] = []
    length = 0
    async for chunk in chunks:
        held.append(bytes(chunk))
        length += len(chunk)
        if length >= size:
            yield b"".join(held)
            held, length = [], 0
    if held:
        yield b"".join(held)


def missing_blob(key: str) -> NotFound:
    """Return the problem that nothing is stored under the key; only the log names the key."""
    log.warning("blob_missing", name=key)
    return NotFound(
        "the content is missing from the blob store",
        hint="It was never stored, was deleted, or is missing from a restored backup.",
    )


def clashing_key(key: str) -> InvalidInput:
    """Return the problem that the key is a folder or lies below a blob."""
    log.error("blob_key_clashes", name=key)
    return InvalidInput("the key would be both a blob and a folder of blobs")
