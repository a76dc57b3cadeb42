"""The last part of the disk, kept free for the database: large writes stop before it."""

import os
from pathlib import Path

from exclave.base.clock import Clock
from exclave.base.errors import Unavailable
from exclave.domain.quotas import DiskFull

_LOOK_EVERY_S = 1.0
_GIB = 1 << 30
_VITAL = frozenset({"logs", "tf-states", "attachments"})
"""Folders of what running work hands in: it may use half of the reserve before it has to wait."""
_RETRY_S = 30


class Disk:
    """Free space of the file system of a folder.

    A file that is kept to be deleted in an emergency would add nothing: free space above a
    threshold is the same room, and copy-on-write file systems do not give it back at once.
    """

    def __init__(self, folder: Path, clock: Clock, reserve: int | None = None) -> None:
        """Watch a folder; without a number, the reserve is chosen by the size of the disk."""
        self._folder = folder
        self._clock = clock
        self._given = reserve
        self._looked_at: float | None = None
        self._free = 0
        self.reserve = 0

    def check(self, key: str, size: int) -> None:
        """Refuse to store bytes under a key of the blob store that would use up the reserve."""
        if not self._has_room(size, self.reserve_for(key)):
            if is_vital(key):
                raise Unavailable(
                    "the disk of the control plane is nearly full",
                    hint="Try again later; the operator of the control plane has to make room.",
                    retry_after_s=_RETRY_S,
                )
            raise DiskFull("the disk of the control plane is nearly full")
        self._free -= size

    def reserve_for(self, key: str) -> int:
        """Return how many bytes have to stay free after a write under this key."""
        self._look()
        return self.reserve // 2 if is_vital(key) else self.reserve

    def has_room(self) -> bool:
        """Return whether the free space is above the reserve."""
        self._look()
        return self._has_room(0, self.reserve)

    @property
    def free(self) -> int:
        """Free bytes, as of at most a second ago."""
        self._look()
        return self._free

    def _has_room(self, size: int, reserve: int) -> bool:
        return reserve == 0 or self._free - size >= reserve

    def _look(self) -> None:
        now = self._clock.monotonic()
        if self._looked_at is not None and now - self._looked_at < _LOOK_EVERY_S:
            return
        self._looked_at = now
        stats = os.statvfs(self._folder)
        self._free = stats.f_bavail * stats.f_frsize
        total = stats.f_blocks * stats.f_frsize
        self.reserve = choose_reserve(total) if self._given is None else self._given


def is_vital(key: str) -> bool:
    """Return whether running work waits for this write."""
    return key.partition("/")[0] in _VITAL


def choose_reserve(total: int) -> int:
    """Choose 5 % of a disk, but 1 to 10 GiB, and never more than 10 % of a small one."""
    return min(max(_GIB, total // 20), 10 * _GIB, total // 10)
