"""The runner's own log, kept in memory until it is shipped to the customer's log store."""

import logging
import threading
from collections import deque
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from exclave.base.logs import JsonFormatter
from exclave.base.printable import dump_json
from exclave.runner.cloud.log_stores import LogLine, fits_batch

MOST_BYTES: Final = 2 << 20
"""How much of the log waits while the store does not accept it; the oldest lines are lost first."""


class OwnLog(logging.Handler):
    """Keeps the newest lines of this process's log."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        super().__init__()
        self.setFormatter(JsonFormatter())
        self._most_bytes = most_bytes
        self._lines: deque[LogLine] = deque()
        self._bytes = 0
        self._lost = 0
        self._lost_at = datetime.min.replace(tzinfo=UTC)
        self._access = threading.Lock()

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the line of a record."""
        line = LogLine(datetime.fromtimestamp(record.created, UTC), self.format(record))
        with self._access:
            self._lines.append(line)
            self._bytes += len(line.text)
            while self._bytes > self._most_bytes:
                oldest = self._lines.popleft()
                self._bytes -= len(oldest.text)
                self._lost, self._lost_at = self._lost + 1, oldest.at

    def note_loss(self, lines: Sequence[LogLine]) -> None:
        """Count lines that could not be shipped; the next batch says so."""
        with self._access:
            self._lost += len(lines)
            self._lost_at = lines[-1].at

    def remove_batch(self, most_bytes: int, most_lines: int) -> list[LogLine]:
        """Remove the oldest lines and return them, after a line about lost ones if there are any.

        A line that is longer than a whole batch is returned alone.
        """
        with self._access:
            batch = self._explain_loss()
            size = 0
            while self._lines and len(batch) < most_lines:
                size += len(self._lines[0].text)
                if (size > most_bytes and batch) or not fits_batch(batch, self._lines[0]):
                    break
                line = self._lines.popleft()
                self._bytes -= len(line.text)
                batch.append(line)
            return batch

    def _explain_loss(self) -> list[LogLine]:
        if not self._lost:
            return []
        at = self._lines[0].at if self._lines else self._lost_at
        facts = {"at": at.isoformat(timespec="milliseconds"), "event": "lines_lost"}
        text = dump_json({**facts, "level": "warning", "count": self._lost})
        self._lost = 0
        return [LogLine(at, text)]
