"""The compressed pieces of a log: pack, unpack, read, search. Pure functions, run by workers too.

A piece is exactly one zstd frame. Pieces that were stored before this was checked may have anything
behind their frame, and a merged one may be several frames: what is read of those is bounded by the
part of the stream that their row claims.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import zstandard

from exclave.base.errors import InvalidInput, TooLarge
from exclave.wire.logs import MAX_SEGMENT, LogRecord, leave_out, read_records

MAX_STORED = 4 << 20
"""Most bytes of the stream in one stored piece, when it is merged of several."""
_LEVEL = 3
_MAX_WINDOW = 1 << 23
_STEP = 64
"""So few bytes unpack to 2 MiB at most: a block of 128 KiB takes four."""


@dataclass(frozen=True, slots=True)
class StoredPiece:
    """The stream from `start` to `end` as it is stored, to be read from `begin` on."""

    execution: str
    start: int
    end: int
    begin: int
    body: bytes


def unpack_piece(body: bytes) -> bytes:
    """Unpack a piece of a runner: one frame, nothing around it, no padding within."""
    try:
        size = zstandard.get_frame_parameters(body).content_size
        if MAX_SEGMENT < size < zstandard.CONTENTSIZE_ERROR:
            raise TooLarge(f"a piece of log has at most {MAX_SEGMENT} bytes", limit=MAX_SEGMENT)
        data = zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW).decompress(
            body, max_output_size=MAX_SEGMENT, allow_extra_data=False
        )
    except zstandard.ZstdError as error:
        raise InvalidInput(
            "the body is not one whole zstd frame",
            hint=f"Send one frame of at most {MAX_SEGMENT} bytes, and nothing before or after it.",
        ) from error
    if not data:
        raise InvalidInput("the piece of log is empty")
    if len(body) > _bound_packed(len(data)):
        raise InvalidInput("the zstd frame is much larger than what it holds")
    if not data.endswith(b"\n"):
        raise InvalidInput("a piece of log ends with a whole record")
    return data


def unpack_stored(body: bytes, size: int) -> bytes:
    """Unpack up to `size` bytes of a stored piece; fewer if it is damaged."""
    unpacker = zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW)
    most = min(size, MAX_STORED)
    try:
        if zstandard.get_frame_parameters(body).content_size == most:
            return unpacker.decompress(body, max_output_size=most)
    except zstandard.ZstdError:
        pass
    return b"".join(_unpack_frames(unpacker, body, most))[:most]


def _unpack_frames(unpacker: zstandard.ZstdDecompressor, body: bytes, most: int) -> Iterator[bytes]:
    """Unpack frames in small steps, up to the first invalid byte.

    No other function of the library both stops at a limit and returns what came before an error.
    """
    frame, at = unpacker.decompressobj(), 0
    while at < len(body) and most > 0:
        step = body[at : at + _STEP]
        try:
            data = frame.decompress(step)
        except zstandard.ZstdError:
            return
        at += len(step)
        most -= len(data)
        yield data
        if frame.eof:
            at -= len(frame.unused_data)
            frame = unpacker.decompressobj()


def pack_piece(data: bytes) -> bytes:
    """Pack a part of a stream as one frame."""
    return zstandard.ZstdCompressor(level=_LEVEL).compress(data)


def read_piece(piece: StoredPiece) -> Iterator[LogRecord]:
    """Yield the records of a piece; for a damaged one, a record says how much is missing."""
    data = unpack_stored(piece.body, piece.end - piece.start)
    reached = max(piece.start, piece.begin)
    for record in read_records(piece.execution, data, reached, reached - piece.start):
        reached = record.offset
        yield record
    if reached < piece.end:
        text = "(a part of the log is left out: it is damaged or lost)"
        yield leave_out(piece.execution, piece.end - reached, piece.end, text)


@dataclass(frozen=True, slots=True)
class Budget:
    """How many bytes a search may still scan and how many matches it may still return."""

    records: int
    matches: int
    text: int
    """Characters of all matches."""


@dataclass(frozen=True, slots=True)
class Scan:
    """The matches of a search; `last` is the record at which its budget was spent."""

    matches: list[LogRecord]
    left: Budget
    last: LogRecord | None


def scan_pieces(pieces: Sequence[StoredPiece], wanted: str, budget: Budget) -> Scan:
    """Return the records that contain the case-folded text, until the budget is spent."""
    matches: list[LogRecord] = []
    records, text = budget.records, budget.text
    for piece in pieces:
        for record in read_piece(piece):
            records -= 1
            if wanted in record.text.casefold():
                matches.append(record)
                text -= len(record.text)
            if records <= 0 or text <= 0 or len(matches) >= budget.matches:
                return Scan(matches, Budget(0, 0, 0), record)
    return Scan(matches, Budget(records, budget.matches - len(matches), text), None)


def _bound_packed(size: int) -> int:
    """Return the maximum size of a regular frame that holds so many bytes."""
    return size + (size >> 6) + 128
