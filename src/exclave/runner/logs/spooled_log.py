"""The log of one execution: written, spooled, uploaded; reopened after a restart."""

import asyncio
from pathlib import Path

from exclave.base.clock import Clock
from exclave.base.ids import Randomness
from exclave.runner.logs.job_log import FindHeld, JobLog, LogLimits, open_log
from exclave.runner.logs.pattern_index import find_nothing
from exclave.runner.logs.protocols import OpenLog, SendLog, ShippedLog
from exclave.runner.logs.spool import SpoolLimits
from exclave.runner.logs.uploader import LogUploader


class SpooledLog:
    """The `ShippedLog` that keeps its stream in the execution's `log/` folder."""

    def __init__(
        self,
        folder: Path,
        send: SendLog,
        *,
        clock: Clock,
        randomness: Randomness,
        limits: LogLimits = LogLimits(),  # noqa: B008 - frozen
        spool_limits: SpoolLimits = SpoolLimits(),  # noqa: B008 - frozen
        held: FindHeld = find_nothing,
    ) -> None:
        self._writer, self._spool = open_log(folder / "log", clock, limits, spool_limits, held)
        self._uploader = LogUploader(self._spool, send, clock=clock, randomness=randomness)

    @property
    def writer(self) -> JobLog:
        """The writer for the executor."""
        return self._writer

    @property
    def end(self) -> int:
        """The length of the stream so far."""
        return self._spool.end

    @property
    def backlog(self) -> int:
        """Bytes that the control plane has not stored yet."""
        return self._uploader.backlog_bytes

    async def close(self) -> tuple[int, str]:
        """End the stream; return its length and SHA-256. A second call returns the same."""
        if self._writer.is_quick_to_close:
            return self._writer.close()
        return await asyncio.to_thread(self._writer.close)

    async def run(self) -> None:
        """Upload until the stream is closed and all of it has arrived, or it is refused."""
        await self._uploader.run()

    async def drain(self, timeout_s: float) -> bool:
        """Wait until everything is uploaded; return False if that takes too long."""
        return await self._uploader.drain(timeout_s)


def bind_open_log(
    clock: Clock,
    randomness: Randomness,
    limits: LogLimits = LogLimits(),  # noqa: B008 - frozen
    spool_limits: SpoolLimits = SpoolLimits(),  # noqa: B008 - frozen
    held: FindHeld = find_nothing,
) -> OpenLog:
    """Return the function that opens the log in an execution's folder."""

    def open_it(folder: Path, execution_id: str, send: SendLog) -> ShippedLog:  # noqa: ARG001
        return SpooledLog(
            folder,
            send,
            clock=clock,
            randomness=randomness,
            limits=limits,
            spool_limits=spool_limits,
            held=held,
        )

    return open_it
