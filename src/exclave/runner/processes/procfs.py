"""Finds and kills processes through /proc (Linux only)."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

MARKER = "EXCLAVE_EXECUTION"
"""The environment variable that every process of an execution inherits."""

_PROC = Path("/proc")
_START_FIELD = 19
"""Start time in clock ticks since boot, counted from the field after the name."""
_GROUP_FIELD = 2
_STATE_FIELD = 0
_DEAD = frozenset({"Z", "X"})


def is_supported() -> bool:
    """Return whether this system lists its processes under /proc."""
    return (_PROC / "self" / "environ").exists()


def read_boot() -> str:
    """Return the id of this boot; start times of different boots cannot be compared."""
    try:
        return (_PROC / "sys" / "kernel" / "random" / "boot_id").read_text().strip()
    except OSError:
        return ""


def read_start(pid: int) -> int | None:
    """Return when a process started, in ticks since boot; None if it does not exist."""
    fields = _read_stat(pid)
    return None if fields is None else int(fields[_START_FIELD])


def list_group(group: int) -> list[int]:
    """Return the living processes of a process group."""
    pids = []
    for pid in _list_pids():
        fields = _read_stat(pid)
        if fields is not None and int(fields[_GROUP_FIELD]) == group:
            pids.append(pid)
    return pids


def list_users() -> dict[int, list[int]]:
    """Return the living processes by uid, both real and effective."""
    pids: dict[int, list[int]] = {}
    for pid in _list_pids():
        for uid in read_users(pid):
            pids.setdefault(uid, []).append(pid)
    return pids


def read_users(pid: int) -> set[int]:
    """Return the uids that a process runs as; none if it does not exist."""
    try:
        text = (_PROC / str(pid) / "status").read_text(errors="replace")
    except OSError:
        return set()
    facts = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    if facts.get("State", "").strip()[:1] in _DEAD:
        return set()
    return {int(word) for word in facts.get("Uid", "").split()}


def list_mapped(uid: int) -> list[int]:
    """Return the processes in user namespaces whose root is this user outside."""
    return [pid for pid in _list_pids() if is_mapped(pid, uid)]


def is_mapped(pid: int, uid: int) -> bool:
    """Return whether a living process is in a user namespace whose root is this user outside."""
    try:
        lines = (_PROC / str(pid) / "uid_map").read_text().splitlines()
    except OSError:
        return False
    is_root = any(line.split()[:2] == ["0", str(uid)] for line in lines)
    return is_root and bool(read_users(pid))


def list_marked(execution_id: str) -> list[int]:
    """Return the living processes that have the marker of an execution."""
    return [pid for pid in _list_pids() if is_marked(pid, execution_id)]


def is_marked(pid: int, execution_id: str) -> bool:
    """Return whether a process has the marker of an execution."""
    wanted = f"{MARKER}={execution_id}".encode()
    try:
        environ = (_PROC / str(pid) / "environ").read_bytes()
    except OSError:
        return False
    return wanted in environ.split(b"\0") and _read_stat(pid) is not None


def kill_marked(execution_id: str) -> int:
    """Kill every process that has the marker; return how many there were."""
    return sum(
        kill_if(pid, lambda pid=pid: is_marked(pid, execution_id))  # type: ignore[misc]
        for pid in list_marked(execution_id)
    )


def kill_if(pid: int, check: Callable[[], bool]) -> bool:
    """Kill a process if the check holds; its id cannot be reused in between."""
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        if not check():
            return False
        signal.pidfd_send_signal(handle, signal.SIGKILL)
    except OSError:
        return False
    finally:
        os.close(handle)
    return True


def _list_pids() -> Iterator[int]:
    if not is_supported():
        return
    me = os.getpid()
    for entry in _PROC.iterdir():
        if entry.name.isdecimal() and int(entry.name) != me:
            yield int(entry.name)


def _read_stat(pid: int) -> list[str] | None:
    """Return the fields after the name of a living process; None if there is none."""
    try:
        text = (_PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    fields = text[text.rfind(")") + 1 :].split()
    return fields if fields and fields[_STATE_FIELD] not in _DEAD else None
