"""The heartbeat interval of an idle runner, as set by the control plane."""

SHORTEST_S, LONGEST_S = 0.05, 4500.0


class Pace:
    """Tracks the interval of the last reply; every poll and renewal counts as a heartbeat."""

    def __init__(self, every_s: float) -> None:
        self.every_s = every_s
        self._shown_at: float | None = None

    def ask(self, every_s: float) -> None:
        """Adopt the interval that a reply asks for."""
        self.every_s = min(max(every_s, SHORTEST_S), LONGEST_S)

    def note_sign(self, at: float) -> None:
        """Record when a heartbeat was sent, on the monotonic clock."""
        self._shown_at = at

    def forget_sign(self) -> None:
        """Forget the last heartbeat, because it did not arrive."""
        self._shown_at = None

    def seconds_until_next(self, now: float) -> float:
        """Return the seconds until the next heartbeat is due; zero or less if it is due now."""
        return 0.0 if self._shown_at is None else self._shown_at + self.every_s - now
