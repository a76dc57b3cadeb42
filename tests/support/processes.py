"""Inspection and signalling of processes that may be exiting."""

import contextlib
import os
import signal
from pathlib import Path

from exclave.runner.processes import procfs


def read_command(pid: int) -> list[bytes]:
    """Return the words of a process's command line; none if it has gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return []


def signal_marked(execution: str, word: bytes, number: signal.Signals) -> int:
    """Signal the processes of an execution that have a word in their command line; count them."""
    sent = 0
    for pid in procfs.list_marked(execution):
        if word in read_command(pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
                sent += 1
    return sent


def list_zombies() -> list[str]:
    """Return the numbers of this process's children that have ended but were not waited for."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return [pid for pid in children if ") Z " in _read_stat(pid)]


def _read_stat(pid: str) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
