"""Reads the pipes of one child into its log, in a thread."""

import asyncio
import os
import selectors
import threading
from collections.abc import Iterable, Mapping

from exclave.base.logs import Log
from exclave.runner.logs.spool import LogWriter
from exclave.wire.logs import Stream

_log = Log("runner.logs")

_CHUNK = 64 * 1024
"""Small enough that masking one chunk does not delay the event loop."""
_LAST_CHUNKS = 32
"""How much is read from a pipe that is still written to after the job's end."""
_IDLE_S = 0.3
"""After this time without output, an unfinished line is logged."""


class Pump:
    """Reads until every writer has closed the pipes, or until `leave`."""

    def __init__(self, pipes: Mapping[int, Stream], log: LogWriter) -> None:
        self._pipes = dict(pipes)
        self._log = log
        self._loop = asyncio.get_running_loop()
        self._done = asyncio.Event()
        self._wake_read, self._wake_write = os.pipe()
        self._thread = threading.Thread(target=self._run, name="log-pump", daemon=True)

    def start(self) -> None:
        """Start reading."""
        self._thread.start()

    async def wait(self) -> None:
        """Return when the pipes are read to the end and closed."""
        await self._done.wait()

    @property
    def is_done(self) -> bool:
        """Whether the pipes are read to the end and closed."""
        return self._done.is_set()

    def leave(self) -> None:
        """Read what is available and close the pipes, although a process still holds them."""
        if not self._done.is_set():
            os.write(self._wake_write, b".")

    def _run(self) -> None:
        selector = selectors.DefaultSelector()
        try:
            selector.register(self._wake_read, selectors.EVENT_READ)
            for pipe, stream in self._pipes.items():
                os.set_blocking(pipe, False)
                selector.register(pipe, selectors.EVENT_READ, stream)
            self._drain(selector)
        finally:
            selector.close()
            for pipe in self._pipes:
                os.close(pipe)
            self._loop.call_soon_threadsafe(self._finish)

    def _drain(self, selector: selectors.BaseSelector) -> None:
        open_pipes = set(self._pipes)
        is_quiet = True
        while open_pipes:
            events = selector.select(None if is_quiet else _IDLE_S)
            is_quiet = not events
            if is_quiet:
                self._flush()
            for key, _ in events:
                if key.fd == self._wake_read:
                    self._read_last(open_pipes)
                    return
                if not self._read(key.fd, key.data):
                    selector.unregister(key.fd)
                    open_pipes.discard(key.fd)

    def _read_last(self, pipes: Iterable[int]) -> None:
        for pipe in pipes:
            for _ in range(_LAST_CHUNKS):
                if not self._read(pipe, self._pipes[pipe]):
                    break

    def _read(self, pipe: int, stream: Stream) -> bool:
        try:
            data = os.read(pipe, _CHUNK)
        except BlockingIOError:
            return False
        if data:
            self._write(stream, data)
        return bool(data)

    def _write(self, stream: Stream, data: bytes) -> None:
        try:
            self._log.write(stream, data)
        except Exception as error:  # noqa: BLE001 - the child must never wait for a broken log
            _log.error("log_write_failed", exc=error)

    def _flush(self) -> None:
        try:
            self._log.flush()
        except Exception as error:  # noqa: BLE001 - the child must never wait for a broken log
            _log.error("log_flush_failed", exc=error)

    def _finish(self) -> None:
        os.close(self._wake_read)
        os.close(self._wake_write)
        self._done.set()
