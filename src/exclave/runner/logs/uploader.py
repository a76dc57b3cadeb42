"""Uploads a job's log: in order, without gaps, at the server's pace."""

import asyncio

import zstandard

from exclave.base.clock import Clock
from exclave.base.errors import Kind, Problem
from exclave.base.ids import Randomness
from exclave.base.logs import Log
from exclave.client.retry import RetryPolicy
from exclave.runner.logs.protocols import SendLog
from exclave.runner.logs.spool import Spool
from exclave.wire.logs import MAX_SEGMENT

_log = Log("runner.logs")

_LEVEL = 3
_LIVE_S = 0.2
"""The minimum time between requests while there is little output."""
_LIVE_BYTES = 64 * 1024
_BATCH_BYTES = 256 * 1024
_LEAST_BYTES = 16 * 1024
"""If even a piece of this size is refused as too large, the upload ends."""
_FINAL_CODES = frozenset({"superseded", "identity_refused", "log_full"})
_FINAL_KINDS = frozenset({Kind.INVALID, Kind.FORBIDDEN, Kind.NOT_FOUND, Kind.GONE, Kind.TOO_LARGE})


class LogUploader:
    """Uploads from the spool until it is closed and empty, or the log is refused."""

    def __init__(
        self,
        spool: Spool,
        send: SendLog,
        *,
        clock: Clock,
        randomness: Randomness,
        policy: RetryPolicy = RetryPolicy(),  # noqa: B008 - frozen
    ) -> None:
        self._spool = spool
        self._send = send
        self._clock = clock
        self._randomness = randomness
        self._policy = policy
        self._offset = spool.start
        self._sent_at = clock.monotonic() - _LIVE_S
        self._failures = 0
        self._most = MAX_SEGMENT
        self._wake = asyncio.Event()
        self._done = asyncio.Event()
        self.stopped_by: str | None = None
        """The code of the problem that ended the upload for good."""

    @property
    def offset(self) -> int:
        """How much of the stream the control plane has stored."""
        return self._offset

    @property
    def backlog_bytes(self) -> int:
        """How many bytes wait to be uploaded."""
        return max(0, self._spool.end - self._offset)

    async def run(self) -> None:
        """Upload until everything is stored; run it as a task. Cancelling it loses nothing."""
        loop = asyncio.get_running_loop()
        self._spool.on_change(lambda: self._wake_from(loop))
        try:
            while not self._is_over():
                self._wake.clear()
                if self.backlog_bytes == 0 and not self._spool.closed:
                    await self._wake.wait()
                    continue
                await self._pace()
                await self._send_batch()
        finally:
            self._spool.on_change(None)
            if self._is_over():
                self._done.set()

    async def drain(self, timeout_s: float) -> bool:
        """Wait until all is uploaded or the log is refused; return False if that takes longer."""
        done = asyncio.ensure_future(self._done.wait())
        late = asyncio.ensure_future(self._clock.sleep(timeout_s))
        try:
            await asyncio.wait((done, late), return_when=asyncio.FIRST_COMPLETED)
        finally:
            done.cancel()
            late.cancel()
            await asyncio.gather(done, late, return_exceptions=True)
        return self._done.is_set()

    def _is_over(self) -> bool:
        return self.stopped_by is not None or (self._spool.closed and self.backlog_bytes == 0)

    def _wake_from(self, loop: asyncio.AbstractEventLoop) -> None:
        if not self._wake.is_set():
            loop.call_soon_threadsafe(self._wake.set)

    async def _pace(self) -> None:
        """Wait briefly for more output, unless there is a backlog or the stream has ended."""
        if self.backlog_bytes < _LIVE_BYTES and not self._spool.closed:
            rest_s = self._sent_at + _LIVE_S - self._clock.monotonic()
            if rest_s > 0:
                await self._clock.sleep(rest_s)

    async def _send_batch(self) -> None:
        most = _BATCH_BYTES if self.backlog_bytes <= MAX_SEGMENT else MAX_SEGMENT
        data = self._spool.read(self._offset, min(most, self._most))
        if not data:
            self._stop("log_gap")
            return
        frame = zstandard.ZstdCompressor(level=_LEVEL).compress(data)
        self._sent_at = self._clock.monotonic()
        try:
            reply = await self._send(self._offset, frame)
        except Problem as problem:
            await self._meet(problem, len(data))
            return
        self._failures = 0
        self._seek(reply.next_offset)

    async def _meet(self, problem: Problem, size: int) -> None:
        expected = problem.facts.get("next_offset")
        if problem.code == "log_offset" and isinstance(expected, int) and expected != self._offset:
            self._seek(expected)
        elif problem.code in _FINAL_CODES:
            self._stop(problem.code)
        elif problem.kind is Kind.TOO_LARGE and min(size, self._most) > _LEAST_BYTES:
            self._most = min(size, self._most) // 2
        elif problem.kind in _FINAL_KINDS:
            self._stop(problem.code)
        else:
            pause = self._policy.choose_delay(self._randomness, self._failures, problem)
            self._failures += 1
            await self._clock.sleep(pause)

    def _seek(self, offset: int) -> None:
        if not self._spool.start <= offset <= self._spool.end:
            # The server lost what was deleted here, or has what this disk lost in a crash.
            self._stop("log_gap")
            return
        self._offset = offset
        self._spool.acknowledge(offset)

    def _stop(self, code: str) -> None:
        self.stopped_by = code
        _log.warning("log_upload_stopped", code=code)
