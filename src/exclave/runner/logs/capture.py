"""A log writer that also keeps the output of a command, for the runner to parse."""

from collections.abc import Iterable
from contextlib import suppress

from exclave.base.secrets import Secret
from exclave.runner.logs.spool import LogWriter
from exclave.wire.logs import Stream


class CapturingLog:
    """Passes output on to the job's log, and keeps the first bytes of stdout and stderr.

    With `quiet`, stdout is kept but not logged: it is data for the runner.
    """

    def __init__(self, log: LogWriter, *, quiet: bool = False, most: int = 4 << 20) -> None:
        self._log = log
        self._quiet = quiet
        self._most = most
        self._kept = {Stream.STDOUT: bytearray(), Stream.STDERR: bytearray()}
        self.truncated = False

    def read(self, stream: Stream) -> str:
        """Return the kept bytes of a stream."""
        return self._kept[stream].decode(errors="replace")

    def hide(self, secrets: Iterable[Secret]) -> None:
        """Mask these values from now on."""
        self._log.hide(secrets)

    def mask(self, text: str) -> str:
        """Return a text with secrets masked, for uses outside of the log."""
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
        """Log a message of the runner."""
        self._log.system(text)

    def flush(self) -> None:
        """Log the beginning of an unfinished line."""
        self._log.flush()

    def end_streams(self) -> None:
        """Log unfinished lines."""
        self._log.end_streams()

    def close(self) -> tuple[int, str]:
        """Do nothing: the log belongs to the job."""
        return (0, "")
