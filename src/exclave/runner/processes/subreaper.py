"""Child subreaper: tracks and kills processes that the kernel reparents to the runner."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from exclave.runner.processes import prctl, procfs

_TASKS = Path("/proc/self/task")


class Orphans:
    """Distinguishes commands that this process started from processes that it adopted.

    Every command adopts its own orphans while it runs, so a process that arrives here belonged to a
    command that has ended. There must be only one instance per process.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ours: set[int] = set()
        self._claimed: set[int] = set()
        self._free: set[int] = set()
        prctl.adopt_orphans()

    @contextmanager
    def starting(self) -> Iterator[set[int]]:
        """Start a command inside the block, and add its pid to the set."""
        with self._lock:
            yield self._ours

    def forget(self, pid: int) -> None:
        """Forget a command that was reaped: its pid may be reused."""
        with self._lock:
            self._ours.discard(pid)

    def claim(self) -> set[int]:
        """Return the orphans that are not claimed yet: those of the command that just ended."""
        with self._lock:
            fresh = self._find_fresh()
            self._claimed |= fresh
        return fresh

    def let_be(self) -> None:
        """Leave the orphans of a command that just ended running: they are a service it started."""
        with self._lock:
            self._free |= self._find_fresh()

    def _find_fresh(self) -> set[int]:
        for pid in list(self._free):
            with suppress(ChildProcessError):
                if os.waitpid(pid, os.WNOHANG) == (0, 0):
                    continue
            self._free.discard(pid)
        return _list_children() - self._ours - self._claimed - self._free

    def end(self, claimed: set[int]) -> int:
        """Kill claimed orphans and reap the dead ones; return how many are left."""
        with self._lock:
            for pid in list(claimed):
                procfs.kill_if(pid, lambda: True)  # not reaped yet, so the pid is not reused
                with suppress(ChildProcessError):
                    if os.waitpid(pid, os.WNOHANG) == (0, 0):
                        continue
                claimed.discard(pid)
                self._claimed.discard(pid)
        return len(claimed)


def _list_children() -> set[int]:
    pids: set[int] = set()
    for task in _TASKS.iterdir():
        with suppress(OSError):
            pids |= {int(word) for word in (task / "children").read_text().split()}
    return pids
