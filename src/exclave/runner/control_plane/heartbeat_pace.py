"""How often the control plane wants to hear from this runner while it has nothing to do."""

SHORTEST_S, LONGEST_S = 0.05, 4500.0


class Pace:
    """Told by every reply; any request that shows the whole runner is a sign of life."""

    def __init__(self, every_s: float) -> None:
        self.every_s = every_s
        self._shown_at: float | None = None

    def ask(self, every_s: float) -> None:
        """Take over the pace that a reply asks for."""
        self.every_s = min(max(every_s, SHORTEST_S), LONGEST_S)

    def note_sign(self, at: float) -> None:
        """Remember when a sign of life was sent, on the monotonic clock."""
        self._shown_at = at

    def forget_sign(self) -> None:
        """Count on the last sign no longer: it did not get through."""
        self._shown_at = None

    def tell_rest(self, now: float) -> float:
        """Tell how long it is until the next sign is due; zero or less if it is."""
        return 0.0 if self._shown_at is None else self._shown_at + self.every_s - now
