"""Reads the database of rpm: headers in SQLite, as rpm 4.16 and newer write it.

The file is of a tenant. It is opened in memory, nothing in its schema is run but the table that is
asked for, and the number of steps is limited.
"""

import sqlite3
import struct
from collections.abc import Iterator
from typing import Final

from exclave.runner.builds.sbom.packages import Package

_NAME, _VERSION, _RELEASE, _EPOCH, _ARCH = 1000, 1001, 1002, 1003, 1022
_INT32, _TEXT = 4, 6
_WANTED: Final = frozenset({_NAME, _VERSION, _RELEASE, _EPOCH, _ARCH})
_ENTRY: Final = struct.Struct(">IIII")
_KEYS: Final = "gpg-pubkey"
"""What rpm keeps public keys as; no package."""
_MOST_ENTRIES: Final = 10_000
_MOST_ROWS: Final = 100_000
_STEPS: Final = 1000
_MOST_CHECKS: Final = 20_000
_JOURNAL: Final = slice(18, 20)
"""Bytes of a database that say how it is written; with 1 it is read as it is, without a journal."""


def read_rpm(data: bytes, distribution: str) -> Iterator[Package]:
    """Yield the packages of a database; raise `ValueError` if it is none."""
    file = bytearray(data)
    file[_JOURNAL] = b"\1\1"
    connection = sqlite3.connect(":memory:")
    try:
        connection.deserialize(bytes(file))
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.set_progress_handler(_Steps().count, _STEPS)
        for (blob,) in connection.execute("SELECT blob FROM Packages LIMIT ?", (_MOST_ROWS,)):
            package = _read_header(blob, distribution) if isinstance(blob, bytes) else None
            if package is not None:
                yield package
    except sqlite3.Error as error:
        raise ValueError(str(error)) from error
    finally:
        connection.close()


class _Steps:
    """Ends a query that takes too long."""

    def __init__(self) -> None:
        self._checks = 0

    def count(self) -> bool:
        """Return whether the query has to end."""
        self._checks += 1
        return self._checks > _MOST_CHECKS


def _read_header(blob: bytes, distribution: str) -> Package | None:
    """Return the package of a header: a list of tags that point to values behind it."""
    if len(blob) < struct.calcsize(">II"):
        return None
    entries, size = struct.unpack_from(">II", blob)
    start = struct.calcsize(">II") + entries * _ENTRY.size
    if entries > _MOST_ENTRIES or start + size > len(blob):
        return None
    values = blob[start : start + size]
    tags: dict[int, str] = {}
    for tag, type_, at, _ in _ENTRY.iter_unpack(blob[8:start]):
        if tag in _WANTED and at < size:
            tags[tag] = _read_value(values, type_, at)
    name, version = tags.get(_NAME, ""), tags.get(_VERSION, "")
    if not name or not version or name == _KEYS:
        return None
    full = f"{version}-{tags.get(_RELEASE, '')}".rstrip("-")
    epoch = tags.get(_EPOCH, "")
    return Package("rpm", name, full, distribution, tags.get(_ARCH, ""), epoch=epoch)


def _read_value(values: bytes, type_: int, at: int) -> str:
    if type_ == _TEXT:
        return values[at : values.find(b"\0", at)].decode(errors="replace")
    if type_ == _INT32 and at + 4 <= len(values):
        return str(int.from_bytes(values[at : at + 4]))
    return ""
