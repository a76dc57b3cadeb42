"""Limits of the log that one execution may store. A hostile runner does not limit itself."""

from dataclasses import dataclass
from datetime import datetime

from exclave.base.errors import TooLarge
from exclave.control.runtime.rates import RateLimited
from exclave.domain.executions import Execution

_MIB = 1 << 20

MAX_PIECES = 200_000
"""Most pieces of one log: five a second, as runners send them, for longer than any job lasts."""
_FREE_PIECES = 1000
_PIECES_PER_S = 10.0
_PIECE_BYTES = 16 * 1024
"""Pieces that may be sent at any time, with each second, and with so many bytes of stream.

A runner sends five a second, and one for 64 KiB when there is more.
"""


class LogFull(TooLarge):
    """The log has reached its limit: the rest of it is not stored. The job is not affected."""

    code = "log_full"
    hint = (
        "Let the job write less, or into a file; the operator of the control plane sets the limit"
        " (EXCLAVE_LOG_BYTES)."
    )


@dataclass(frozen=True, slots=True)
class LogLimits:
    """Limits of one execution's log."""

    bytes: int = 1024 * _MIB
    """Of the uncompressed stream. A runner's own limits keep it well below."""
    pieces: int = MAX_PIECES


def check_pieces(execution: Execution, now: datetime, limits: LogLimits) -> None:
    """Refuse a piece if there are too many, or too many small ones for the elapsed time."""
    if execution.log_pieces >= limits.pieces:
        raise LogFull(f"a log has at most {limits.pieces} pieces", limit=limits.pieces)
    seconds = max(0.0, (now - execution.offered_at).total_seconds())
    allowed = _FREE_PIECES + seconds * _PIECES_PER_S + execution.log_bytes / _PIECE_BYTES
    if execution.log_pieces >= allowed:
        raise RateLimited(
            "the log comes in too many small pieces",
            hint="Wait as long as `Retry-After` says, then send what has gathered as one piece.",
            limit="log_pieces",
            retry_after_s=1,
        )


def check_bytes(end: int, limits: LogLimits) -> None:
    """Refuse a piece that would make the log too long."""
    if end > limits.bytes:
        raise LogFull(f"a log has at most {limits.bytes} bytes", limit=limits.bytes)
