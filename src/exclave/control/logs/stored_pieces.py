"""Stored pieces of logs: read from the blob store in order, no more than their rows allow."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TypeVar

from exclave.base.errors import NotFound
from exclave.control.deps import Deps
from exclave.control.logs.pieces import StoredPiece
from exclave.domain.identity import OrgId
from exclave.domain.jobs import ExecutionId
from exclave.storage import logs
from exclave.storage.blobs.base import Blobs
from exclave.storage.engine.database import AnyRow

T = TypeVar("T")

_ROWS = 200
"""Rows that are looked up at once."""
_INLINE = 8 * 1024
"""Fewer bytes are handled faster than they are handed to a thread."""
_OLD_GROWTH = 16
_OLD_SLACK = 64 * 1024
_OLD_MOST = 32 << 20
"""How much larger than its content an old piece may be: frames of one byte each grow most."""


async def list_pieces(
    deps: Deps, org: OrgId, execution: ExecutionId, offset: int, limit: int = _ROWS
) -> Sequence[AnyRow]:
    """Return the rows of a log's pieces from an offset on, in order."""
    return await deps.db.read(
        lambda tx: logs.list_segments(tx, org, execution, offset=offset, limit=limit)
    )


async def fetch_pieces(
    deps: Deps, org: OrgId, execution: ExecutionId, offset: int
) -> AsyncIterator[StoredPiece]:
    """Yield the pieces of a log from an offset on; the body of a lost one is empty."""
    missing = ""
    while True:
        rows = await list_pieces(deps, org, execution, offset)
        for row in rows:
            try:
                body = await fetch_body(deps.blobs, row)
            except NotFound:
                if row.blob != missing:
                    missing = row.blob
                    break  # it was merged into another one meanwhile: look again
                body = b""
            yield StoredPiece(execution, row.start, row.end, offset, body)
            offset = row.end
        else:
            if len(rows) < _ROWS:
                return


async def fetch_body(blobs: Blobs, row: AnyRow) -> bytes:
    """Return the content of a stored piece; `NotFound` if its blob is gone.

    The size of one without `stored` was never checked, so only a plausible part of it is read.
    """
    if row.stored is not None:
        return await blobs.get(row.blob)
    most = min(_OLD_GROWTH * (row.end - row.start) + _OLD_SLACK, _OLD_MOST)
    return b"".join([chunk async for chunk in blobs.read(row.blob, 0, most)])


async def run_aside(size: int, work: Callable[[], T]) -> T:
    """Run a function in a thread if it handles many bytes, else directly."""
    return work() if size < _INLINE else await asyncio.to_thread(work)
