"""Records of started processes, and killing what an earlier runner process left behind."""

import asyncio
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from exclave.base.clock import Clock
from exclave.base.logs import Log
from exclave.runner.data_folder import write_durably
from exclave.runner.processes import cgroups, procfs
from exclave.runner.processes.cell import Cell

_log = Log("runner.processes")

_FILE = "process.json"
_PATIENCE_S = 5.0
_PAUSE_S = 0.02


@dataclass(frozen=True, slots=True)
class ProcessRecord:
    """The leader of a process group; its start time distinguishes it from a later process."""

    execution_id: str
    group: int
    started: int | None
    """Ticks since boot; None if unknown."""
    boot: str
    uid: int | None = None
    """The user that only this execution runs as; None if jobs share one."""
    cgroup: str | None = None


def record_process(folder: Path, execution_id: str, group: int, cell: Cell | None = None) -> None:
    """Record a started process durably."""
    user = None if cell is None else cell.user
    record = ProcessRecord(
        execution_id,
        group,
        procfs.read_start(group),
        procfs.read_boot(),
        uid=user.uid if user is not None and user.alone else None,
        cgroup=None if cell is None or cell.cgroup is None else str(cell.cgroup),
    )
    write_durably(folder / _FILE, json.dumps(asdict(record)).encode())


def read_process(folder: Path) -> ProcessRecord | None:
    """Return the record of the process that was started last in this folder."""
    try:
        return ProcessRecord(**json.loads((folder / _FILE).read_bytes()))
    except (FileNotFoundError, ValueError, TypeError):
        return None


async def kill_leftovers(
    folder: Path, clock: Clock, *, owned: frozenset[int] = frozenset()
) -> bool:
    """Kill what an earlier runner process left of an execution; return whether all of it is gone.

    A process is killed only if it carries the execution's marker, is in its cgroup, runs as its
    user while that is one of the `owned`, or belongs to the group on record while its leader is
    the very process that was recorded. The folder's name is the execution's id. Where the
    system does not show its processes nothing is killed or certain.
    """
    if not procfs.is_supported():
        _log.warning("leftovers_unknown", folder=folder.name)
        return False
    until = clock.monotonic() + _PATIENCE_S
    while True:
        left = await asyncio.to_thread(_kill_once, folder, owned)
        if left == 0:
            _drop_cgroup(folder)
            return True
        if clock.monotonic() >= until:
            _log.error("leftovers_alive", folder=folder.name, count=left)
            return False
        await clock.sleep(_PAUSE_S)


def _drop_cgroup(folder: Path) -> None:
    record = read_process(folder)
    if record is not None and record.cgroup is not None:
        cgroups.remove_cgroup(Path(record.cgroup))


def kill_cell(execution_id: str, uid: int | None, cgroup: Path | None) -> set[int]:
    """Kill all processes of a user, or in a cgroup, that belongs to one execution only.

    Those in a namespace of the user may have other ids.
    """
    pids: set[int] = set()
    if uid is not None:
        pids |= set(procfs.list_users().get(uid, ()))
        for pid in pids:
            procfs.kill_if(pid, lambda pid=pid: uid in procfs.read_users(pid))  # type: ignore[misc]
        for pid in procfs.list_mapped(uid):
            if procfs.kill_if(pid, lambda pid=pid: procfs.is_mapped(pid, uid)):  # type: ignore[misc]
                pids.add(pid)
    if cgroup is not None:
        for pid in cgroups.list_members(cgroup, execution_id):
            if procfs.kill_if(pid, lambda pid=pid: _is_member(pid, cgroup, execution_id)):  # type: ignore[misc]
                pids.add(pid)
    return pids


def _is_member(pid: int, cgroup: Path, execution_id: str) -> bool:
    return pid in cgroups.list_members(cgroup, execution_id)


def _kill_once(folder: Path, owned: frozenset[int]) -> int:
    """Kill all processes found; return how many there were."""
    execution_id = folder.name
    marked = procfs.list_marked(execution_id)
    for pid in marked:
        procfs.kill_if(pid, lambda pid=pid: procfs.is_marked(pid, execution_id))  # type: ignore[misc]
    record = read_process(folder)
    if record is None or record.boot != procfs.read_boot():
        return len(marked)
    cgroup = None if record.cgroup is None else Path(record.cgroup)
    uid = record.uid if record.uid in owned else None
    marked += kill_cell(execution_id, uid, cgroup)
    started = procfs.read_start(record.group)
    if started is not None and started != record.started:
        return len(set(marked))  # the id was reused
    members = procfs.list_group(record.group)
    if started is not None:
        for pid in members:
            procfs.kill_if(pid, lambda: procfs.read_start(record.group) == record.started)
    # Members without leader and marker may belong to a later group: not killed, so not certain.
    return len({*marked, *members})
