"""What this server has seen in the database; whoever uses it checks whether it is still true."""

from collections.abc import Hashable
from typing import Any

from exclave.storage.engine.growth import Growth

_MOST = 2000


class Memory:
    """The values that were used last, by their keys."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._kept: dict[Hashable, Any] = {}
        self.growth = Growth()

    def recall(self, key: Hashable) -> Any | None:
        """Tell what was kept under a key; None if nothing was, or too long ago."""
        value = self._kept.pop(key, None)
        if value is not None:
            self._kept[key] = value
        return value

    def keep(self, key: Hashable, value: Any) -> None:
        """Keep a value, and let go of what nobody used for longest."""
        self._kept.pop(key, None)
        self._kept[key] = value
        if len(self._kept) > self._most:
            del self._kept[next(iter(self._kept))]
