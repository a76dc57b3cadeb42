"""Isolation of one execution's processes: user, cgroup, subreaper."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from exclave.base.logs import Log
from exclave.runner.processes import cgroups, prctl
from exclave.runner.processes.subreaper import Orphans
from exclave.runner.processes.users import JobUser, Users

_log = Log("runner.cells")

_OPEN_MODE, _CLOSED_MODE = 0o710, 0o700


@dataclass(frozen=True, slots=True)
class Cell:
    """The isolation of one execution's commands."""

    user: JobUser | None = None
    """None: commands run as the runner's own user."""
    cgroup: Path | None = None
    orphans: Orphans | None = None


NO_CELL = Cell()
"""No isolation: processes are found by their group and marker only."""


class Crowded(Exception):  # noqa: N818 - says what happened, like `Problem`
    """There is no free user for another execution."""


class Cells:
    """Creates the cells of a runner, with whatever isolation the system supports."""

    def __init__(
        self,
        users: Users | None = None,
        *,
        base: Path | None = None,
        orphans: Orphans | None = None,
    ) -> None:
        self._users = users
        self._base = base
        self._orphans = orphans

    @property
    def owned(self) -> frozenset[int]:
        """The uids that only jobs of this runner use."""
        return frozenset() if self._users is None else self._users.owned

    @contextmanager
    def hold(self, folder: Path) -> Iterator[Cell]:
        """Create the cell of an execution, and open its folder to the cell's user inside the block.

        Afterwards the folder is closed, because the user is reused.
        """
        user = None if self._users is None else self._users.acquire()
        if user is None and self._users is not None:
            raise Crowded("no uid of EXCLAVE_RUN_AS is free: processes run as each of them")
        cgroup = None if self._base is None else cgroups.make_cgroup(self._base, folder.name)
        try:
            if user is not None:
                os.chown(folder, -1, user.gid)
                folder.chmod(_OPEN_MODE)
            yield Cell(user, cgroup, self._orphans)
        finally:
            if user is not None and self._users is not None:
                close_folder(folder)
                self._users.release(user)
            if cgroup is not None:
                cgroups.remove_cgroup(cgroup)


def close_folder(folder: Path) -> None:
    """Close an execution's folder to everybody but the runner."""
    folder.chmod(_CLOSED_MODE)


def make_cells(users: Users | None) -> Cells:
    """Return the cells of this process, with every kind of isolation that this system supports."""
    if not prctl.is_linux():
        return Cells()
    if users is not None:
        os.setgroups([])  # they would apply when the runner accesses files of a job
    base = cgroups.find_cgroups()
    _log.info("cells_made", isolated=users is not None, cgroups=base is not None)
    return Cells(users, base=base, orphans=Orphans())
