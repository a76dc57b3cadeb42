"""A cgroup (v2) per job, which no process can leave, if the runner may create cgroups."""

import os
from contextlib import suppress
from pathlib import Path

_MOUNTS = Path("/proc/self/mountinfo")
_MINE = Path("/proc/self/cgroup")
_PREFIX = "exclave-"
_ROOT_FIELD, _PLACE_FIELD = 3, 4


def find_cgroups() -> Path | None:
    """Return the cgroup below which this process may create others; None if it may not."""
    try:
        mounts = [line.split() for line in _MOUNTS.read_text().splitlines()]
        mine = [line for line in _MINE.read_text().splitlines() if line.startswith("0::")]
    except OSError:
        return None
    for fields in mounts:
        if "cgroup2" in fields[fields.index("-") :] and mine and fields[_ROOT_FIELD] == "/":
            cgroup = Path(fields[_PLACE_FIELD] + mine[0].removeprefix("0::")).resolve()
            return cgroup if _may_make(cgroup) else None
    return None


def make_cgroup(base: Path, execution_id: str) -> Path | None:
    """Create the cgroup of an execution; return None if the system refuses."""
    cgroup = base / f"{_PREFIX}{execution_id}"
    try:
        cgroup.mkdir(exist_ok=True)
    except OSError:
        return None
    return cgroup


def open_cgroup(cgroup: Path) -> int | None:
    """Return a file descriptor through which a child enters the cgroup."""
    try:
        return os.open(cgroup / "cgroup.procs", os.O_WRONLY | os.O_CLOEXEC)
    except OSError:
        return None


def list_members(cgroup: Path, execution_id: str) -> list[int]:
    """Return the living processes of an execution's cgroup and of those below it."""
    if cgroup.name != f"{_PREFIX}{execution_id}":
        return []
    pids = []
    for file in cgroup.rglob("cgroup.procs"):
        with suppress(OSError):
            pids += [int(word) for word in file.read_text().split()]
    return pids


def remove_cgroup(cgroup: Path) -> None:
    """Remove an empty cgroup, and those that a job created in it."""
    if not cgroup.name.startswith(_PREFIX):
        return
    below = sorted((folder for folder in cgroup.rglob("*") if folder.is_dir()), reverse=True)
    for folder in (*below, cgroup):
        with suppress(OSError):
            folder.rmdir()


def _may_make(cgroup: Path) -> bool:
    probe = cgroup / f"{_PREFIX}probe-{os.getpid()}"
    try:
        probe.mkdir()
        probe.rmdir()
    except OSError:
        return False
    return True
