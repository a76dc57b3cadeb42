"""Log records: the line format of a job's log stream, and what readers get."""

import json
from collections.abc import Iterable
from enum import IntEnum

from exclave.wire.model import Id, Reply

MAX_SEGMENT = 1 << 20
"""Most bytes of one uncompressed segment."""
MAX_TEXT = 64 * 1024
"""Most characters of one record; longer lines are cut into partial records."""


class Stream(IntEnum):
    """Where a record comes from."""

    SYSTEM = 0
    STDOUT = 1
    STDERR = 2


class LogRecord(Reply):
    """One line of a job's output: number, Unix milliseconds; `offset` is where the next begins."""

    execution_id: Id
    n: int
    t_ms: int
    stream: Stream
    text: str
    partial: bool = False
    dropped: int = 0
    offset: int


class LogPage(Reply):
    """Records from an offset on; `complete` when the stream has ended and all of it was read."""

    execution_id: Id | None
    records: list[LogRecord]
    next_offset: int
    complete: bool


class LogMatch(Reply):
    """A record that contains the searched text."""

    job_id: Id
    execution_id: Id
    step: str | None
    record: LogRecord


class LogMatches(Reply):
    """Matches, and whether more of the log was left unread within the budget."""

    items: list[LogMatch]
    next: str | None = None


def write_record(
    n: int, t_ms: int, stream: Stream, text: str, *, partial: bool = False, dropped: int = 0
) -> bytes:
    """Write one record as its line of the stream."""
    row: list[object] = [n, t_ms, int(stream), text]
    if partial or dropped:
        row.append({"dropped": dropped} if dropped else {"partial": True})
    return json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def read_records(execution_id: str, data: bytes, offset: int) -> Iterable[LogRecord]:
    """Read whole records from a piece of the stream that begins at `offset`."""
    for line in data.splitlines(keepends=True):
        if not line.endswith(b"\n"):
            return
        offset += len(line)
        yield read_record(execution_id, line, offset)


def read_record(execution_id: str, line: bytes, offset: int) -> LogRecord:
    """Read one line; a malformed one becomes a visible record, not an error for the reader."""
    try:
        row = json.loads(line)
        extra = row[4] if len(row) > 4 else {}  # noqa: PLR2004 - the optional fifth field
        return LogRecord(
            execution_id=execution_id, n=row[0], t_ms=row[1], stream=row[2], text=row[3],
            partial=bool(extra.get("partial")), dropped=extra.get("dropped", 0), offset=offset,
        )  # fmt: skip
    except (ValueError, LookupError, TypeError, AttributeError):
        return LogRecord(
            execution_id=execution_id, n=-1, t_ms=0, stream=Stream.SYSTEM,
            text="(unreadable record)", dropped=len(line), offset=offset,
        )  # fmt: skip
