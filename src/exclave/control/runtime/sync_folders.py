"""The folders in which uploaded app directories are unpacked while they are synced."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_PREFIX = "sync-"


@dataclass(frozen=True, slots=True)
class SyncFolder:
    """A folder of one sync, locked until it is removed."""

    path: Path
    lock: int

    def remove(self) -> None:
        """Remove the folder with all that is in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self.lock)


class SyncFolders:
    """Makes folders for syncs, and removes those of processes that are gone.

    Each folder is locked as long as its sync takes. The kernel drops the lock of a process that
    dies, however it dies, so a folder that can be locked is left over. Servers may share the data
    folder: a lock on the parent keeps them from removing a folder that is not locked yet.
    """

    def __init__(self, parent: Path) -> None:
        self._parent = parent

    def make(self) -> SyncFolder:
        """Make a folder that only this user may read."""
        self._parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _hold(self._parent, fcntl.LOCK_SH):
            path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=self._parent))
            lock = os.open(path, os.O_RDONLY)
            fcntl.flock(lock, fcntl.LOCK_EX)
        return SyncFolder(path, lock)

    def remove_stale(self) -> int:
        """Remove the folders that killed processes left; return how many there were."""
        if not self._parent.is_dir():
            return 0
        with _hold(self._parent, fcntl.LOCK_EX):
            return sum(map(_remove_unlocked, self._parent.glob(f"{_PREFIX}*")))


@contextmanager
def _hold(folder: Path, kind: int) -> Iterator[None]:
    lock = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(lock, kind)
        yield
    finally:
        os.close(lock)


def _remove_unlocked(path: Path) -> bool:
    lock = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return False
    SyncFolder(path, lock).remove()
    return True
