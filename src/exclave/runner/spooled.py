"""The real log of an execution: written to the spool, uploaded from it."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from exclave.base.clock import Clock
from exclave.base.ids import Randomness
from exclave.runner.logs.spool import LogWriter
from exclave.runner.logs.uploader import LogUploader
from exclave.runner.logs.writer import open_log
from exclave.runner.shipping import OpenLog, SendLog

Ended = tuple[int, str]
RunBlocking = Callable[[Callable[[], Ended]], Awaitable[Ended]]


class SpooledLog:
    """Opening it again in the same folder goes on where it was cut off."""

    def __init__(
        self,
        folder: Path,
        send: SendLog,
        *,
        clock: Clock,
        randomness: Randomness,
        run_blocking: RunBlocking,
    ) -> None:
        log, self._spool = open_log(folder / "log", clock)
        self.writer: LogWriter = log
        self._uploader = LogUploader(self._spool, send, clock=clock, randomness=randomness)
        self._run_blocking = run_blocking
        self._ended: Ended | None = None

    @property
    def end(self) -> int:
        """Bytes of the stream so far."""
        return self._spool.end

    @property
    def backlog(self) -> int:
        """Bytes that the control plane has not stored yet."""
        return self._uploader.backlog_bytes

    async def close(self) -> Ended:
        """End the stream, off the event loop: after a flood it takes seconds."""
        if self._ended is None:
            self._ended = await self._run_blocking(self.writer.close)
        return self._ended

    async def run(self) -> None:
        """Ship until the stream is closed and all of it has arrived, or nobody wants it."""
        await self._uploader.run()

    async def drain(self, timeout_s: float) -> bool:
        """Wait until all has arrived; False if that took longer."""
        return await self._uploader.drain(timeout_s)


def build_open_log(
    clock: Clock, randomness: Randomness, run_blocking: RunBlocking = asyncio.to_thread
) -> OpenLog:
    """Tell the runner how to open logs; a simulation closes them inline instead of in a thread."""

    def open_spooled(folder: Path, execution_id: str, send: SendLog) -> SpooledLog:
        del execution_id
        return SpooledLog(
            folder, send, clock=clock, randomness=randomness, run_blocking=run_blocking
        )

    return open_spooled
