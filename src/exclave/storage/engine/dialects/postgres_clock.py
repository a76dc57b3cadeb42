"""The database's time, extrapolated between two of its answers."""

from exclave.base.clock import Clock

_FRESH_S = 2.0
"""For this long after an answer the time is extrapolated; then it is queried and waited for."""
_DUE_S = 0.2
"""This long after an answer, the next transaction queries the time with its first statement."""


class ServerClock:
    """Adds the time that has passed here to the database's last answer.

    An answer may have waited for us, and is then too early: of those of the last seconds the latest
    time counts. So two servers tell the same time, to within the way of their quickest answer.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ahead = 0
        self._ahead_before = 0
        self._since = float("-inf")
        self._heard = float("-inf")

    def note_answer(self, micros: int) -> None:
        """Note an answer that has just arrived."""
        at = self._clock.monotonic()
        ahead = micros - int(at * 1_000_000)
        if at - self._since > _FRESH_S:
            self._ahead_before = self._ahead if at - self._since <= 2 * _FRESH_S else ahead
            self._ahead = ahead
            self._since = at
        self._ahead = max(self._ahead, ahead)
        self._heard = at

    def is_due(self) -> bool:
        """Return whether the database should be queried again."""
        return self._clock.monotonic() - self._heard > _DUE_S

    def read(self) -> int | None:
        """Return microseconds since 1970, or None if the last answer is too old."""
        at = self._clock.monotonic()
        if at - self._heard > _FRESH_S:
            return None
        return int(at * 1_000_000) + max(self._ahead, self._ahead_before)
