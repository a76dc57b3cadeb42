"""The log of a job: output and messages of the runner become numbered records in the spool."""

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from exclave.base.clock import Clock
from exclave.base.logs import Log
from exclave.base.secrets import Secret
from exclave.runner.data_folder import write_durably
from exclave.runner.logs.channel import Channel
from exclave.runner.logs.lines import LineSplitter, Piece, write_pieces
from exclave.runner.logs.masking import mask_text
from exclave.runner.logs.pattern_index import Joined, Needles, NeedleSet, find_nothing
from exclave.runner.logs.secret_spellings import find_needles, is_maskable
from exclave.runner.logs.spool import Spool, SpoolLimits
from exclave.runner.logs.tail import TailRing
from exclave.wire.logs import Stream, write_record

_log = Log("runner.logs")

_MIB = 1 << 20
_CHUNK = 64 * 1024
_WORST_GROWTH = 6
"""A control character becomes six bytes in a record."""
_RECORD_COST = 64
_QUICK_BYTES = 256 * 1024
_SLACK = 512 * 1024
"""Space for what channels hold back."""


FindHeld = Callable[[], NeedleSet]
"""Return the patterns that every log must mask; the same object while nothing has changed."""


@dataclass(frozen=True, slots=True)
class LogLimits:
    """How much of a job's output is kept: the beginning (as records) and the end (raw)."""

    head_bytes: int = 64 * _MIB
    tail_bytes: int = 32 * _MIB


class JobLog:
    """The `LogWriter` of one execution.

    Output is logged at once while there is space. After the head, only the last bytes are kept, in
    memory, and logged at the end. A record says exactly how many bytes were dropped.
    """

    def __init__(
        self,
        spool: Spool,
        clock: Clock,
        started_at: datetime,
        limits: LogLimits = LogLimits(),  # noqa: B008 - frozen
        held: FindHeld = find_nothing,
    ) -> None:
        self._spool = spool
        self._clock = clock
        self._limits = limits
        self._lock = threading.RLock()
        since = (clock.now() - started_at).total_seconds()
        self._began = clock.monotonic() - max(0.0, since)
        self._began_ms = int(started_at.timestamp() * 1000)
        self._find_held = held
        self._held = held()
        self._values: set[str] = set()
        self._named: frozenset[bytes] = frozenset()
        self._needles = Joined(self._held)
        self._channels = {
            stream: Channel(self._needles) for stream in (Stream.STDOUT, Stream.STDERR)
        }
        self._tail: TailRing | None = None
        self._lost = 0

    def hide(self, secrets: Iterable[Secret]) -> None:
        """Mask these values from now on; the log says how many are too short for that."""
        with self._lock:
            fresh = {secret.reveal() for secret in secrets} - self._values
            if not fresh:
                return
            self._values |= fresh
            self._named |= find_needles(fresh)
            self._arrange()
            short = sum(1 for value in fresh if not is_maskable(value))
            if short:
                self.system(f"warning: {short} secret(s) are shorter than 6 bytes and not masked")

    def mask(self, text: str) -> str:
        """Return a text with secrets masked, for uses outside of the log."""
        self._refresh()
        return mask_text(self._needles, text)

    def write(self, stream: Stream, data: bytes) -> None:
        """Write bytes of output."""
        with self._lock:
            self._refresh()
            t_ms = self._get_time_ms()
            for at in range(0, len(data), _CHUNK):
                self._route_output(stream, data[at : at + _CHUNK], t_ms)

    def system(self, text: str) -> None:
        """Log a message of the runner."""
        with self._lock:
            t_ms = self._get_time_ms()
            if self._tail is None:
                self._show_system(self.mask(text), t_ms)
            else:
                self._keep(Stream.SYSTEM, self.mask(text).encode(), t_ms)

    def flush(self) -> None:
        """Log the beginning of an unfinished line."""
        with self._lock:
            if self._tail is None:
                for stream, channel in self._channels.items():
                    self._show(stream, channel.flush(), self._get_time_ms())

    def end_streams(self) -> None:
        """Log unfinished lines; the next output comes from another process."""
        with self._lock:
            if self._tail is None:
                self._finish_channels()

    @property
    def is_quick_to_close(self) -> bool:
        """Return whether closing writes and syncs so little that it needs no thread."""
        return self._tail is None and self._spool.end < _QUICK_BYTES

    def close(self) -> tuple[int, str]:
        """Log the tail and unfinished lines, and sync everything."""
        with self._lock:
            if self._tail is not None:
                self._show_tail(self._tail)
                self._tail = None
            self._finish_channels()
            self._report_lost(self._get_time_ms())
            return self._spool.close()

    def _refresh(self) -> None:
        """Refresh the runner's own secrets: they may change while a job runs."""
        held = self._find_held()
        if held is not self._held:
            with self._lock:
                self._held = held
                self._arrange()

    def _arrange(self) -> None:
        self._needles = Joined(self._held, Needles(self._named))
        for channel in self._channels.values():
            channel.use(self._needles)

    def _route_output(self, stream: Stream, data: bytes, t_ms: int) -> None:
        if self._tail is None and self._spool.end >= self._limits.head_bytes:
            self._begin_tail(t_ms)
        if self._tail is not None:
            self._keep(stream, data, t_ms)
        else:
            self._show_or_lose(stream, data, t_ms)

    def _show_or_lose(self, stream: Stream, data: bytes, t_ms: int) -> None:
        channel = self._channels[stream]
        need = _WORST_GROWTH * len(data) + _RECORD_COST * data.count(b"\n") + _SLACK
        if self._lost:
            need *= 2  # resume only when there is space for more than one chunk
        if self._spool.room() < need:
            if not self._lost:
                self._finish_lines(t_ms)
            self._lost += channel.lose(data)
            return
        self._report_lost(t_ms)
        if not self._show(stream, channel.feed(data), t_ms):
            self._lost += len(data)

    def _begin_tail(self, t_ms: int) -> None:
        kept = self._limits.tail_bytes
        self._report_lost(t_ms)
        self._show_system(
            f"the log has reached {self._spool.end} bytes: from here on only the last {kept} bytes"
            " of output are kept, and shown when the job has ended",
            t_ms,
        )
        self._tail = TailRing(kept)

    def _keep(self, stream: Stream, data: bytes, t_ms: int) -> None:
        if self._tail is None:
            return
        for piece in self._tail.append(stream, data, t_ms):
            if piece.stream is Stream.SYSTEM:
                self._show_system(piece.data.decode(), piece.t_ms)
            else:
                self._lost += self._channels[piece.stream].lose(piece.data)

    def _show_tail(self, tail: TailRing) -> None:
        pieces = tail.drain()
        if self._lost and pieces:
            self._finish_lines(pieces[0].t_ms)
            self._report_lost(pieces[0].t_ms)
        for piece in pieces:
            if piece.stream is Stream.SYSTEM:
                self._finish_lines(piece.t_ms)
                self._show_system(piece.data.decode(), piece.t_ms)
            else:
                self._show_or_lose(piece.stream, bytes(piece.data), piece.t_ms)

    def _finish_lines(self, t_ms: int) -> None:
        for stream, channel in self._channels.items():
            self._show(stream, channel.flush(), t_ms)

    def _finish_channels(self) -> None:
        for stream, channel in self._channels.items():
            self._show(stream, channel.finish(), self._get_time_ms())

    def _report_lost(self, t_ms: int) -> None:
        if self._lost:
            text = f"{self._lost} bytes of output are left out here"
            n = self._spool.next_n
            record = write_record(n, t_ms, Stream.SYSTEM, text, dropped=self._lost)
            if self._append(record, 1):
                self._lost = 0

    def _show(self, stream: Stream, pieces: list[Piece], t_ms: int) -> bool:
        return self._append(write_pieces(self._spool.next_n, t_ms, stream, pieces), len(pieces))

    def _show_system(self, text: str, t_ms: int) -> None:
        lines = LineSplitter()
        data = text.encode(errors="replace")
        self._show(Stream.SYSTEM, [*lines.feed(data), *lines.finish()], t_ms)

    def _append(self, records: bytes, count: int) -> bool:
        try:
            self._spool.append(records, count)
        except OSError as error:
            # The job continues: its output is dropped until the disk accepts writes again.
            _log.error("log_append_failed", exc=error)
            return False
        return True

    def _get_time_ms(self) -> int:
        """Return Unix milliseconds that never go back, even if the machine's clock is changed."""
        return self._began_ms + max(0, int((self._clock.monotonic() - self._began) * 1000))


def open_log(
    folder: Path,
    clock: Clock,
    limits: LogLimits = LogLimits(),  # noqa: B008 - frozen
    spool_limits: SpoolLimits = SpoolLimits(),  # noqa: B008 - frozen
    held: FindHeld = find_nothing,
) -> tuple[JobLog, Spool]:
    """Open the log of an execution in its `log/` folder; after a restart it is continued."""
    spool = Spool(folder, spool_limits)
    file = folder / "started_at"
    if not file.exists():
        write_durably(file, clock.now().isoformat().encode())
    started_at = datetime.fromisoformat(file.read_text())
    return JobLog(spool, clock, started_at, limits, held), spool
