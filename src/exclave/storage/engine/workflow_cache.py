"""The workflows that this server wrote last, so that their steps need not be read again."""

from collections.abc import Hashable
from typing import Any, Protocol

_MOST = 2000


class Revised(Protocol):
    """A value with the revision of the row that it was written to."""

    @property
    def revision(self) -> int:
        """The revision, raised by every write."""
        ...


class WorkflowCache:
    """Workflows by key, with the least recently used dropped first.

    Why this exists: every event of a workflow needs all its steps, and most events of a workflow
    arrive at the server that handled the one before. Without the cache each of them reads every
    step again; with it an event reads one row, that of the workflow.

    Why it is right, although several servers write: the caller locks the workflow's row, reads its
    `revision`, and gets a cached value only for exactly that revision (`get`). Every write raises
    the revision under the same lock, so a value that another server replaced is never returned.
    A value is put only after its commit (`Tx.when_committed`), so one that was rolled back is
    never seen. `peek` asks before the lock, only to decide what to read along with it.
    """

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._values: dict[Hashable, Revised] = {}

    def peek(self, key: Hashable) -> bool:
        """Return whether there is a value, of whatever revision."""
        return key in self._values

    def get(self, key: Hashable, revision: int) -> Any | None:
        """Return the value for the revision of the locked row, or None."""
        value = self._values.pop(key, None)
        if value is None:
            return None
        self._values[key] = value  # the newest end: dictionaries keep their order
        return value if value.revision == revision else None

    def put(self, key: Hashable, value: Revised) -> None:
        """Keep a committed value, and drop the one that was not used for longest."""
        self._values.pop(key, None)
        self._values[key] = value
        if len(self._values) > self._most:
            del self._values[next(iter(self._values))]
