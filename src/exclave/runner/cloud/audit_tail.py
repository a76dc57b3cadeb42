"""The part of the runner's audit trail that was not copied to the customer's log store yet."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from exclave.runner.cloud.log_stores import LogLine, fits_batch
from exclave.runner.data_folder import write_durably

_MARK: Final = "audit.shipped"


class AuditTail:
    """Reads the trail from the last entry on that was copied; survives a restart."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._mark = file.with_name(_MARK)
        self._at = self._read_mark()

    def read_batch(self, most_bytes: int, most_lines: int) -> tuple[list[LogLine], int]:
        """Return the next entries, and where the ones after them begin."""
        try:
            with self._file.open("rb") as trail:
                if trail.seek(0, 2) < self._at:  # another file: the disk was cleared by hand
                    self._at = 0
                trail.seek(self._at)
                data = trail.read(most_bytes)
                changed_at = datetime.fromtimestamp(os.fstat(trail.fileno()).st_mtime, UTC)
        except FileNotFoundError:
            return [], self._at
        lines: list[LogLine] = []
        end = self._at
        for raw in data.splitlines(keepends=True)[:most_lines]:
            if not raw.endswith(b"\n"):
                break
            line = _read_line(raw, changed_at)
            if not fits_batch(lines, line):
                break
            lines.append(line)
            end += len(raw)
        if not lines and len(data) == most_bytes:  # an entry longer than a whole batch
            end += len(data)
        return lines, end

    def mark(self, end: int) -> None:
        """Store that all entries up to here were copied."""
        if end != self._at:
            write_durably(self._mark, str(end).encode())
            self._at = end

    def _read_mark(self) -> int:
        try:
            return int(self._mark.read_text())
        except (OSError, ValueError):
            return 0


def _read_line(raw: bytes, otherwise: datetime) -> LogLine:
    """Return an entry with its time; a line that is none has that of the file."""
    text = raw.decode(errors="replace").rstrip("\n")
    try:
        at = datetime.fromisoformat(json.loads(text)["at"])
    except (ValueError, KeyError, TypeError):
        at = otherwise
    return LogLine(at if at.tzinfo else otherwise, text)
