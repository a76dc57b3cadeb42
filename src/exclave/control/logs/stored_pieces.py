"""Stored pieces of logs: read from the blob store in order, no more than their rows allow."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TypeVar

from exclave.base.errors import NotFound
from exclave.control.deps import Deps
from exclave.control.logs.pieces import StoredPiece
from exclave.domain.identity import OrgId
from exclave.domain.jobs import ExecutionId
from exclave.domain.logs import LogSegment
from exclave.storage import logs
from exclave.storage.blobs.base import Blobs

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
) -> Sequence[LogSegment]:
    """Return the segments of a log's pieces from an offset on, in order."""
    return await deps.db.read(
        lambda tx: logs.list_segments(tx, org, execution, offset=offset, limit=limit)
    )


async def fetch_pieces(
    deps: Deps, org: OrgId, execution: ExecutionId, offset: int
) -> AsyncIterator[StoredPiece]:
    """Yield the pieces of a log from an offset on; the body of a lost one is empty."""
    missing = ""
    while True:
        segments = await list_pieces(deps, org, execution, offset)
        for segment in segments:
            try:
                body = await fetch_body(deps.blobs, segment)
            except NotFound:
                if segment.blob != missing:
                    missing = segment.blob
                    break  # it was merged into another one meanwhile: look again
                body = b""
            yield StoredPiece(execution, segment.start, segment.end, offset, body)
            offset = segment.end
        else:
            if len(segments) < _ROWS:
                return


async def fetch_body(blobs: Blobs, segment: LogSegment) -> bytes:
    """Return the content of a stored piece; `NotFound` if its blob is gone.

    The size of one without `stored` was never checked, so only a plausible part of it is read.
    """
    if segment.stored is not None:
        return await blobs.get(segment.blob)
    most = min(_OLD_GROWTH * (segment.end - segment.start) + _OLD_SLACK, _OLD_MOST)
    return b"".join([chunk async for chunk in blobs.read(segment.blob, 0, most)])


async def run_aside(size: int, work: Callable[[], T]) -> T:
    """Run a function in a thread if it handles many bytes, else directly."""
    return work() if size < _INLINE else await asyncio.to_thread(work)
