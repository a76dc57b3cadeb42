"""The runner's data folder: layout, lock, durable writes, boot counter, free space."""

import errno
import fcntl
import os
import stat
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import ClassVar

from exclave.base.errors import Kind, Problem

_FOLDER_MODE = 0o700
_PASSABLE_MODE = 0o711
"""Other users may enter folders below that belong to them, but cannot list this one."""
_FILE_MODE = 0o600
_PAUSE_EVERY = 200


class DataFolderInUse(Problem):
    """Another process uses the folder; two with one identity would look like a stolen key."""

    kind: ClassVar = Kind.CONFLICT
    code: ClassVar = "data_folder_in_use"
    hint: ClassVar = "Stop the other runner first, or give this one a data folder of its own."


class DataFolderBroken(Problem):
    """The folder is damaged or unusable; going on could run jobs twice."""

    code: ClassVar = "data_folder_broken"
    hint: ClassVar = "Check the owner, the mode and the free space of the runner's data folder."


class DataFolder:
    """The locked folder of one runner process; everything in it is written durably."""

    def __init__(
        self, path: Path, *, reserve_bytes: int = 0, executions: Path | None = None
    ) -> None:
        self.path = path
        self.executions = executions or path / "executions"
        self._usual = path / "executions"
        self.outbox = path / "outbox"
        self.audit = path / "audit.jsonl"
        self._reserve = path / "reserve"
        for folder in (path, self._usual, self.outbox):
            _make_private(folder)
        if executions is not None:
            _make_passable(executions)
        self._lock = _acquire_lock(path / "lock")
        self._fill_reserve(reserve_bytes)

    def close(self) -> None:
        """Release the lock on the folder."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def raise_boot(self) -> int:
        """Increment and return the boot counter; it is on disk before it is used."""
        file = self.path / "boot"
        try:
            boot = int(file.read_text()) + 1 if file.exists() else 1
        except ValueError as error:
            message = f"`{file}` does not hold a number"
            raise DataFolderBroken(message) from error
        self.write(file, str(boot).encode())
        return boot

    def write(self, file: Path, data: bytes) -> None:
        """Replace a file durably; if the disk is full, delete the reserve first."""
        try:
            write_durably(file, data)
        except OSError as error:
            if error.errno != errno.ENOSPC or not self.give_up_reserve():
                raise
            write_durably(file, data)

    def give_up_reserve(self) -> bool:
        """Delete the reserve file; return False if it is gone already."""
        if not self._reserve.exists():
            return False
        self._reserve.unlink()
        return True

    def remove(self, file: Path) -> None:
        """Remove a file durably; no error if it does not exist."""
        file.unlink(missing_ok=True)
        sync_folder(file.parent)

    def make_execution(self, execution_id: str) -> Path | None:
        """Create the folder of a new execution; return None if it exists already."""
        folder = self.executions / execution_id
        try:
            folder.mkdir(mode=_FOLDER_MODE)
        except FileExistsError:
            return None
        sync_folder(self.executions)
        return folder

    def find_execution(self, execution_id: str) -> Path:
        """Return the folder of an execution, also one that is still in the data folder."""
        usual = self._usual / execution_id
        return usual if usual.exists() else self.executions / execution_id

    def list_executions(self) -> list[Path]:
        """Return the folders of executions that were not removed, oldest id first."""
        roots = {self._usual, self.executions}
        folders = (folder for root in roots for folder in root.iterdir() if folder.is_dir())
        return sorted(folders, key=lambda folder: folder.name)

    def _fill_reserve(self, size: int) -> None:
        if size <= 0 or (self._reserve.exists() and self._reserve.stat().st_size == size):
            return
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
            with os.fdopen(os.open(self._reserve, flags, _FILE_MODE), "wb") as file:
                os.posix_fallocate(file.fileno(), 0, size)
        except OSError:
            # Without space for the reserve there is none for jobs: `free` stays 0.
            self._reserve.unlink(missing_ok=True)


def write_durably(file: Path, data: bytes) -> None:
    """Write a file atomically and sync it: after a crash the old or the new content exists."""
    beside = file.with_name(f".{file.name}.new")
    try:
        handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, _FILE_MODE)
        with os.fdopen(handle, "wb") as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        beside.replace(file)
    except OSError:
        beside.unlink(missing_ok=True)
        raise
    sync_folder(file.parent)


def remove_durably(file: Path) -> None:
    """Remove a file for good; no error if it does not exist."""
    if file.exists():
        file.unlink()
        sync_folder(file.parent)


def sync_folder(folder: Path) -> None:
    """Sync a folder, so that created and renamed entries survive a crash."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


async def remove_tree(folder: Path, pause: Callable[[], Awaitable[None]]) -> None:
    """Remove a folder and its content without delaying renewals."""
    count = 0
    todo = [folder]
    while todo:
        here = todo[-1]
        here.chmod(_FOLDER_MODE)
        with os.scandir(here) as entries:
            ordered = sorted(entries, key=lambda entry: entry.name)
        folders = [Path(entry.path) for entry in ordered if entry.is_dir(follow_symlinks=False)]
        for entry in ordered:
            if not entry.is_dir(follow_symlinks=False):
                os.unlink(entry.path)  # noqa: PTH108 - the entry's own path, links not followed
                count += 1
                if count % _PAUSE_EVERY == 0:
                    await pause()
        if folders:
            todo.extend(folders)
        else:
            here.rmdir()
            todo.pop()


def _make_passable(folder: Path) -> None:
    """Create a folder that other users may enter; missing parents get the same mode."""
    try:
        for parent in (*reversed(folder.parents), folder):
            if not parent.exists():
                parent.mkdir()
                parent.chmod(_PASSABLE_MODE)
        folder.chmod(_PASSABLE_MODE)
    except OSError as error:
        message = f"the jobs folder `{folder}` cannot be used: {error.strerror}"
        raise DataFolderBroken(message) from error


def _make_private(folder: Path) -> None:
    try:
        folder.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
        if stat.S_IMODE(folder.stat().st_mode) != _FOLDER_MODE:
            folder.chmod(_FOLDER_MODE)
    except OSError as error:
        message = f"the data folder `{folder}` cannot be used: {error.strerror}"
        raise DataFolderBroken(message) from error


def _acquire_lock(file: Path) -> int:
    try:
        handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _FILE_MODE)
    except OSError as error:
        message = f"the lock `{file}` cannot be opened: {error.strerror}"
        raise DataFolderBroken(message) from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(handle)
        message = f"another runner process uses the data folder `{file.parent}`"
        raise DataFolderInUse(message) from error
    return handle
