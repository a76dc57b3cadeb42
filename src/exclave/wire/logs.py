"""Log records: the line format of a job's log stream, and the replies to readers."""

import json
import re
from collections.abc import Iterator
from enum import IntEnum

from pydantic_core import from_json

from exclave.wire.model import Id, Reply

MAX_SEGMENT = 1 << 20
"""Most bytes of one uncompressed segment."""
MAX_TEXT = 64 * 1024
"""Most characters of one record; longer lines are cut into partial records."""
_MAX_LINE = 6 * MAX_TEXT + 256
"""Most bytes of one record: every character escaped, and the numbers."""
_SHAPE = re.compile(
    rb"\[\s*\d{1,16}\s*,\s*\d{1,16}\s*,\s*[0-2]\s*,"
    rb'\s*"(?:[^"\\]++|\\.)*+"\s*(?:,\s*\{[^][{}]{0,99}\}\s*)?\]\s*'
)
"""A record's shape, checked before parsing, because nested values are expensive to build."""
_MAX_COUNT = (1 << 53) - 1
"""The largest whole number that every JSON client reads exactly."""
_MAX_TIME_MS = 253_402_300_799_999
"""The last millisecond of the year 9999, the limit of many date libraries."""


class Stream(IntEnum):
    """The source of a record."""

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
    """Matches, and whether part of the log was not searched because the budget was spent."""

    items: list[LogMatch]
    next: str | None = None


def write_record(
    n: int, t_ms: int, stream: Stream, text: str, *, partial: bool = False, dropped: int = 0
) -> bytes:
    """Return a record as its line of the stream."""
    row: list[object] = [n, t_ms, int(stream), text]
    if partial or dropped:
        row.append({"dropped": dropped} if dropped else {"partial": True})
    return json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def read_records(execution_id: str, data: bytes, offset: int, at: int = 0) -> Iterator[LogRecord]:
    """Yield whole records from index `at` of the data on, which is at `offset` of the stream."""
    while (end := data.find(b"\n", at) + 1) > 0:
        offset += end - at
        yield read_record(execution_id, data[at:end], offset)
        at = end


def read_record(execution_id: str, line: bytes, offset: int) -> LogRecord:
    """Return the record of a line; a malformed line becomes a visible record, not an error."""
    try:
        return _parse(execution_id, line, offset)
    except ValueError:
        return leave_out(execution_id, len(line), offset, "(unreadable record)")


def leave_out(execution_id: str, size: int, offset: int, text: str) -> LogRecord:
    """Return a record that stands for so many missing bytes of the stream, up to `offset`."""
    return LogRecord(
        execution_id=execution_id,
        n=-1,
        t_ms=0,
        stream=Stream.SYSTEM,
        text=text,
        dropped=size,
        offset=offset,
    )


def _parse(execution_id: str, line: bytes, offset: int) -> LogRecord:
    """Parse a line strictly: its sender may be hostile, its readers are any JSON clients.

    `from_json` refuses what they would not survive: bad UTF-8, lone surrogates.
    """
    if len(line) > _MAX_LINE or _SHAPE.fullmatch(line) is None:
        raise ValueError("not shaped like a record")
    n, t_ms, stream, text, *more = from_json(line)
    extra = more[0] if more else {}
    if len(text) > MAX_TEXT:
        raise ValueError("too much text")
    return LogRecord(
        execution_id=execution_id,
        n=_count(n),
        t_ms=_count(t_ms, _MAX_TIME_MS),
        stream=stream,
        text=text,
        partial=extra.get("partial") is True,
        dropped=_count(extra.get("dropped", 0)),
        offset=offset,
    )


def _count(value: object, most: int = _MAX_COUNT) -> int:
    if type(value) is not int or not 0 <= value <= most:
        raise ValueError("not a count")
    return value
