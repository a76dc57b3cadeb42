"""A ring buffer of the last bytes of a long output."""

from collections import deque
from dataclasses import dataclass

from exclave.wire.logs import Stream

_PIECE_BYTES = 64 * 1024
_PIECE_COST = 256
"""The memory of an entry besides its bytes, so that small entries are bounded too."""


@dataclass(slots=True)
class Piece:
    """Raw bytes of one stream, and when the first of them arrived."""

    stream: Stream
    data: bytearray
    t_ms: int


class TailRing:
    """The last pieces of all streams in their order; the oldest are dropped."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._size = 0
        self._pieces: deque[Piece] = deque()

    def append(self, stream: Stream, data: bytes, t_ms: int) -> list[Piece]:
        """Add bytes; return the pieces that were dropped."""
        last = self._pieces[-1] if self._pieces else None
        if (
            last is None
            or last.stream is not stream
            or stream is Stream.SYSTEM
            or len(last.data) + len(data) > _PIECE_BYTES
        ):
            last = Piece(stream, bytearray(), t_ms)
            self._pieces.append(last)
            self._size += _PIECE_COST
        last.data += data
        self._size += len(data)
        return self._drop_oldest()

    def drain(self) -> list[Piece]:
        """Return all pieces and empty the ring."""
        pieces = list(self._pieces)
        self._pieces.clear()
        self._size = 0
        return pieces

    def _drop_oldest(self) -> list[Piece]:
        fallen = []
        while self._size > self._most and len(self._pieces) > 1:
            piece = self._pieces.popleft()
            self._size -= len(piece.data) + _PIECE_COST
            fallen.append(piece)
        return fallen
