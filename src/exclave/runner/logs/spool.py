"""The spool: a job's log on disk, in segments, until the control plane has stored it."""

import hashlib
import os
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from exclave.base.logs import Log
from exclave.base.secrets import Secret
from exclave.runner.data_folder import sync_folder
from exclave.wire.logs import MAX_SEGMENT, Stream

_log = Log("runner.logs")

_MIB = 1 << 20
_FOLDER_MODE = 0o700
_FILE_MODE = 0o600


class LogWriter(Protocol):
    """Receives the output of a job. May be called from any thread."""

    def hide(self, secrets: Iterable[Secret]) -> None:
        """Mask these values too, from now on."""
        ...

    def mask(self, text: str) -> str:
        """Return a text with secrets masked, for uses outside of the log."""
        ...

    def write(self, stream: Stream, data: bytes) -> None:
        """Write bytes of output: they are masked, cut into records and spooled."""
        ...

    def system(self, text: str) -> None:
        """Log a message of the runner."""
        ...

    def flush(self) -> None:
        """Log the beginning of an unfinished line."""
        ...

    def end_streams(self) -> None:
        """Log unfinished lines; the next output comes from another process."""
        ...

    def close(self) -> tuple[int, str]:
        """End the log; return its length and the SHA-256 of the whole stream ("" if unknown).

        After a flood this takes seconds; never call it on the event loop.
        """
        ...


@dataclass(frozen=True, slots=True)
class SpoolLimits:
    """How much disk space the spool of one execution may use."""

    segment_bytes: int = 8 * _MIB
    total_bytes: int = 256 * _MIB
    keep_free_bytes: int = 32 * _MIB
    """Disk space that is kept free of logs."""


@dataclass(slots=True)
class _Segment:
    """A file with the stream from `offset` on, beginning with record number `n`."""

    path: Path
    offset: int
    n: int
    size: int

    @property
    def end(self) -> int:
        return self.offset + self.size


class Spool:
    """Appends whole records, reads them by offset, deletes what was acknowledged.

    Appended records survive `kill -9`; when reopened, an incomplete last record is cut off and the
    numbering continues.
    """

    def __init__(self, folder: Path, limits: SpoolLimits = SpoolLimits()) -> None:  # noqa: B008
        folder.mkdir(mode=_FOLDER_MODE, exist_ok=True)
        self._folder = folder
        self._limits = limits
        self._lock = threading.RLock()
        self._segments = _list_segments(folder)
        self._handle = -1
        self._on_change: Callable[[], None] | None = None
        self._settling: list[threading.Thread] = []
        self.start = self._segments[0].offset if self._segments else 0
        """The first offset that is still on disk."""
        self.end = 0
        """The offset of the next record."""
        self.next_n = 0
        self.closed = False
        self._hash = hashlib.sha256() if self.start == 0 else None
        if self._segments:
            self._recover()

    @property
    def used_bytes(self) -> int:
        """The disk space that the spool uses."""
        return self.end - self.start

    def room(self) -> int:
        """Return how many bytes can be appended now."""
        disk = os.statvfs(self._folder)
        free = disk.f_bavail * disk.f_frsize - self._limits.keep_free_bytes
        return max(0, min(self._limits.total_bytes - self.used_bytes, free))

    def append(self, data: bytes, count: int) -> None:
        """Append whole records; after a disk error nothing is appended."""
        with self._lock:
            if not data or self.closed:
                return
            if self._handle < 0 or self._segments[-1].size + len(data) > self._limits.segment_bytes:
                self._begin_segment()
            segment = self._segments[-1]
            try:
                _write_all(self._handle, data)
            except OSError:
                os.ftruncate(self._handle, segment.size)
                os.lseek(self._handle, segment.size, os.SEEK_SET)
                raise
            segment.size += len(data)
            self.next_n += count
            self.end = segment.end
            if self._hash is not None:
                self._hash.update(data)
        self._notify()

    def read(self, offset: int, most: int) -> bytes:
        """Return whole records from an offset on, about `most` bytes; empty if there are none."""
        with self._lock:
            segment = next(
                (segment for segment in self._segments if segment.offset <= offset < segment.end),
                None,
            )
            if segment is None:
                return b""
            path, at, size = segment.path, offset - segment.offset, segment.end - offset
        with path.open("rb") as file:
            data = os.pread(file.fileno(), min(size, MAX_SEGMENT), at)
        if len(data) <= most:
            return data[: data.rfind(b"\n") + 1]
        cut = data.rfind(b"\n", 0, most)
        return data[: (cut if cut >= 0 else data.find(b"\n")) + 1]

    def acknowledge(self, offset: int) -> None:
        """Delete stored segments; the last one stays, because it has the next record number."""
        with self._lock:
            while len(self._segments) > 1 and self._segments[0].end <= offset:
                self._segments.pop(0).path.unlink(missing_ok=True)
                self.start = self._segments[0].offset

    def on_change(self, call: Callable[[], None] | None) -> None:
        """Set a function to call, from any thread, after each append and the close."""
        self._on_change = call

    def close(self) -> tuple[int, str]:
        """Sync the spool and return its length and digest."""
        with self._lock:
            self._settle()
            self.closed = True
            digest = self._hash.hexdigest() if self._hash is not None else ""
        for thread in self._settling:
            thread.join()
        self._notify()
        return self.end, digest

    def _begin_segment(self) -> None:
        self._settle()
        path = self._folder / f"{self.end:016d}-{self.next_n:012d}.log"
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        self._handle = os.open(path, flags, _FILE_MODE)
        if self._segments and self._segments[-1].size == 0:
            self._segments.pop()
        self._segments.append(_Segment(path, self.end, self.next_n, 0))

    def _settle(self) -> None:
        """Sync the segment in a thread, so that writers and readers do not wait for the disk."""
        if self._handle >= 0:
            thread = threading.Thread(
                target=_sync_and_close, args=(self._handle, self._folder), name="log-sync"
            )
            self._settling = [
                sync_thread for sync_thread in self._settling if sync_thread.is_alive()
            ]
            self._settling.append(thread)
            self._handle = -1
            thread.start()

    def _recover(self) -> None:
        last = self._segments[-1]
        data = last.path.read_bytes()
        whole = data.rfind(b"\n") + 1
        self._handle = os.open(last.path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        os.ftruncate(self._handle, whole)
        os.lseek(self._handle, whole, os.SEEK_SET)
        last.size = whole
        self.end = last.end
        self.next_n = last.n + data.count(b"\n", 0, whole)
        if self._hash is not None:
            for segment in self._segments:
                self._hash.update(segment.path.read_bytes())

    def _notify(self) -> None:
        if self._on_change is not None:
            self._on_change()


def _list_segments(folder: Path) -> list[_Segment]:
    segments = []
    for path in sorted(folder.glob("*-*.log")):
        offset, n = path.stem.split("-")
        segments.append(_Segment(path, int(offset), int(n), path.stat().st_size))
    return segments


def _sync_and_close(handle: int, folder: Path) -> None:
    try:
        os.fsync(handle)
        sync_folder(folder)
    except OSError as error:
        _log.error("log_sync_failed", exc=error)
    finally:
        os.close(handle)


def _write_all(handle: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]
