"""A log writer that keeps what a command prints, for those who must read it."""

from collections.abc import Iterable
from contextlib import suppress

from exclave.base.secrets import Secret
from exclave.runner.logs.spool import LogWriter
from exclave.wire.logs import Stream


class CapturingLog:
    """Passes output on to the job's log, and keeps the first bytes of stdout and stderr.

    With `quiet` stdout is only kept: it is data for the runner, not for people.
    """

    def __init__(self, log: LogWriter, *, quiet: bool = False, most: int = 4 << 20) -> None:
        self._log = log
        self._quiet = quiet
        self._most = most
        self._kept = {Stream.STDOUT: bytearray(), Stream.STDERR: bytearray()}
        self.truncated = False

    def read(self, stream: Stream) -> str:
        """Read what was kept of a stream."""
        return self._kept[stream].decode(errors="replace")

    def hide(self, secrets: Iterable[Secret]) -> None:
        """Mask these values from here on."""
        self._log.hide(secrets)

    def mask(self, text: str) -> str:
        """Mask a text that leaves the runner another way."""
        return self._log.mask(text)

    def write(self, stream: Stream, data: bytes) -> None:
        """Store output, and pass it on unless `quiet`."""
        with suppress(KeyError):
            kept = self._kept[stream]
            room = self._most - len(kept)
            kept += data[:room]
            self.truncated = self.truncated or len(data) > room
        if not (self._quiet and stream is Stream.STDOUT):
            self._log.write(stream, data)

    def system(self, text: str) -> None:
        """Add a line of the runner's own."""
        self._log.system(text)

    def flush(self) -> None:
        """Show the beginning of a line whose end is not in sight."""
        self._log.flush()

    def end_streams(self) -> None:
        """End the last lines."""
        self._log.end_streams()

    def close(self) -> tuple[int, str]:
        """Leave the log open: it belongs to the job."""
        return (0, "")
