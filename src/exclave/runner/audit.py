"""The runner's own audit trail: hash-chained lines on its disk about what it was asked and did."""

import errno
import hashlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from exclave.base.clock import Clock
from exclave.base.digests import canonical_json, digest_bytes

GENESIS = "0" * 64
_TAIL = 1 << 20


@dataclass(frozen=True, slots=True)
class AuditReport:
    """Whether the chain is intact; if not, the first bad line and what is wrong with it."""

    ok: bool
    lines: int
    bad_line: int | None = None
    problem: str = ""


class Audit:
    """Appends entries; each is synced before `write` returns and chained to the one before."""

    def __init__(
        self, file: Path, clock: Clock, give_up_reserve: Callable[[], bool] = lambda: False
    ) -> None:
        self._file = file
        self._clock = clock
        self._give_up_reserve = give_up_reserve
        torn = _cut_torn_tail(file)
        last = _read_last(file)
        self._seq = _read_seq(last)
        self._hash = str(last["hash"]) if last else GENESIS
        if torn:
            facts = {"bytes": len(torn), "digest": digest_bytes(torn), "kept_in": "audit.torn"}
            self.write("audit_repaired", **facts)

    def write(self, event: str, **facts: object) -> None:
        """Add one entry; it is on the disk when this returns."""
        body: dict[str, object] = {
            "seq": self._seq + 1,
            "at": self._clock.now().isoformat(timespec="milliseconds"),
            "event": event,
            "facts": facts,
            "prev": self._hash,
        }
        digest = _hash(body)
        line = canonical_json({**body, "hash": digest}) + b"\n"
        try:
            _append(self._file, line)
        except OSError as error:
            if error.errno != errno.ENOSPC or not self._give_up_reserve():
                raise
            _append(self._file, line)
        self._seq += 1
        self._hash = digest


def verify_audit(file: Path) -> AuditReport:
    """Verify the whole chain; report the first line that was changed, moved, added or removed."""
    previous, count = GENESIS, 0
    with file.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            problem = _find_fault(line, number, previous)
            if problem:
                return AuditReport(ok=False, lines=count, bad_line=number, problem=problem)
            previous = str(json.loads(line)["hash"])
            count = number
    return AuditReport(ok=True, lines=count)


def _find_fault(line: bytes, number: int, previous: str) -> str:
    entry = _read_entry(line)
    if entry is None:
        return "the line is torn, or its content does not match its hash"
    if entry.get("prev") != previous:
        return "the line does not follow the one before it"
    if entry.get("seq") != number:
        return f"the line is numbered {entry.get('seq')}"
    return ""


def _read_entry(line: bytes) -> dict[str, object] | None:
    """Return the entry of a complete line; raise unless it matches its hash and canonical form."""
    try:
        entry = json.loads(line)
        if not isinstance(entry, dict) or canonical_json(entry) + b"\n" != line:
            return None
    except (ValueError, RecursionError):
        return None
    body = {name: value for name, value in entry.items() if name != "hash"}
    return entry if entry.get("hash") == _hash(body) else None


def _hash(body: Mapping[str, object]) -> str:
    return hashlib.sha256(canonical_json(body)).hexdigest()


def _read_seq(entry: Mapping[str, object] | None) -> int:
    seq = entry.get("seq") if entry else 0
    return seq if isinstance(seq, int) else 0


def _read_last(file: Path) -> dict[str, object] | None:
    lines = _read_tail(file).splitlines(keepends=True)
    return _read_entry(lines[-1]) if lines else None


def _cut_torn_tail(file: Path) -> bytes:
    """Move an incomplete last line, which a crash left, into another file."""
    if not file.exists():
        return b""
    tail = _read_tail(file)
    lines = tail.splitlines(keepends=True)
    torn = b""
    while lines and _read_entry(lines[-1]) is None:
        torn = lines.pop() + torn
    if not torn or (not lines and len(tail) < file.stat().st_size):
        return b""
    _append(file.with_name("audit.torn"), torn)
    with file.open("r+b") as handle:
        handle.truncate(file.stat().st_size - len(torn))
        os.fsync(handle.fileno())
    return torn


def _read_tail(file: Path) -> bytes:
    if not file.exists():
        return b""
    with file.open("rb") as handle:
        handle.seek(max(0, file.stat().st_size - _TAIL))
        return handle.read()


def _append(file: Path, data: bytes) -> None:
    handle = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    size = os.fstat(handle).st_size
    try:
        written = os.write(handle, data)
        while written < len(data):
            written += os.write(handle, data[written:])
        os.fsync(handle)
    except OSError:
        os.ftruncate(handle, size)
        raise
    finally:
        os.close(handle)
