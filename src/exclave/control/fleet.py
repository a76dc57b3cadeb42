"""How many runners this server holds, and how slowly that lets them breathe."""

from exclave.domain.timings import Timings

SIGNS_PER_SECOND = 40
"""Polls, and as many heartbeats, of idle runners that one server invites per second."""
BIG = 1000
"""Beyond this many runners even that is too much, and the signs become rarer still.

A runner that goes away is noticed by its connection; a heartbeat is for one that only hangs.
"""
LONGEST_RENEW_S = 1200.0


class Fleet:
    """Counts the polls that are open here, and remembers whose last one brought nothing."""

    def __init__(self) -> None:
        self.polling = 0
        self.idle: set[str] = set()

    def hold_s(self, timings: Timings, longest: float) -> float:
        """Tell how long a poll may wait: the usual time, more in a big fleet, never too long."""
        return min(longest, max(timings.poll_hold_s, self._spread_s()))

    def renew_s(self, timings: Timings, *, busy: bool) -> float:
        """Tell when the next heartbeat is due; only idle runners of a big fleet may take longer."""
        if busy:
            return timings.renew_s
        return max(timings.renew_s, min(self._spread_s(), LONGEST_RENEW_S))

    def _spread_s(self) -> float:
        return self.polling / SIGNS_PER_SECOND * max(1.0, self.polling / BIG)
