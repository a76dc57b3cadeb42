"""Figures about the background chores of this server, for `/metrics`."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime


@dataclass(slots=True)
class ChoreTally:
    """Rounds, failures and times of one chore since the server started."""

    runs: int = 0
    failures: int = 0
    """Rounds that ended with an error."""
    rows_failed: int = 0
    """Rows that could not be worked off, while the others of their round were."""
    seconds: float = 0.0
    succeeded_at: datetime | None = None


class ChoreTallies:
    """The tallies of all chores, by name."""

    def __init__(self) -> None:
        self._by_name: dict[str, ChoreTally] = {}

    def of(self, chore: str) -> ChoreTally:
        """Return the tally of a chore; it is created when first requested."""
        return self._by_name.setdefault(chore, ChoreTally())

    def list_all(self) -> Mapping[str, ChoreTally]:
        """Return all tallies by name."""
        return dict(self._by_name)
