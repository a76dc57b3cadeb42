"""Protocols of the log of one execution: the writer, and its upload."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol

from exclave.runner.logs.spool import LogWriter
from exclave.wire.runner import LogReply

SendLog = Callable[[int, bytes], Awaitable[LogReply]]
"""Send a zstd frame that begins at this offset of the uncompressed stream."""


class ShippedLog(Protocol):
    """A log that is spooled on disk and uploaded in the background; reopening it resumes both."""

    @property
    def writer(self) -> LogWriter:
        """The writer for the executor."""
        ...

    @property
    def end(self) -> int:
        """The length of the stream so far."""
        ...

    @property
    def backlog(self) -> int:
        """Bytes that the control plane has not stored yet."""
        ...

    async def close(self) -> tuple[int, str]:
        """End the stream; return its length and SHA-256. A second call returns the same."""
        ...

    async def run(self) -> None:
        """Upload until the stream is closed and all of it has arrived, or it is refused."""
        ...

    async def drain(self, timeout_s: float) -> bool:
        """Wait until everything is uploaded; return False if that takes too long."""
        ...


OpenLog = Callable[[Path, str, SendLog], ShippedLog]
"""Open the log in an execution's folder: (folder, execution id, how to send)."""
