"""A log that is rotated over a few files of limited size."""

import os
from pathlib import Path
from typing import IO


class RotatedLog:
    """Appends to a file; a full one is renamed to `.1`, that to `.2`, and the oldest is deleted."""

    def __init__(self, file: Path, *, most_bytes: int = 5 << 20, files: int = 3) -> None:
        self._file = file
        self._most_bytes = most_bytes
        self._files = files
        self._out = self._open()

    def write(self, data: bytes) -> None:
        """Append data, which is never split over two files."""
        if self._out.tell() + len(data) > self._most_bytes and self._out.tell() > 0:
            self._out.close()
            self._move()
            self._out = self._open()
        self._out.write(data)
        self._out.flush()

    def close(self) -> None:
        """Close the file."""
        self._out.close()

    def _open(self) -> IO[bytes]:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        out = os.fdopen(os.open(self._file, flags, 0o600), "ab")
        out.seek(0, os.SEEK_END)
        return out

    def _move(self) -> None:
        for number in range(self._files - 1, 0, -1):
            older = self._name(number)
            newer = self._name(number - 1) if number > 1 else self._file
            if newer.exists():
                newer.replace(older)

    def _name(self, number: int) -> Path:
        return self._file.with_name(f"{self._file.name}.{number}")
