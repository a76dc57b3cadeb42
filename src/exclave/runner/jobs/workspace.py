"""The folder of one execution and its subfolders."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from exclave.runner.outcomes import WorkFailed
from exclave.runner.processes.users import JobUser, touch_files
from exclave.wire.jobs import Reason

KEEP_FREE_BYTES = 128 << 20
"""With less free space than this, no command is started."""

_FOLDER_MODE = 0o700
_SOCKET_FOLDER = 88
"""A socket's path has at most 107 bytes; Terraform providers name theirs `plugin1234567890`."""
_MIB = 1 << 20


ROOM = "job"
"""The subfolder that commands may write to; everything else belongs to the runner."""


@dataclass(frozen=True, slots=True)
class Workspace:
    """The folders of an execution's commands, owned by the user that they run as."""

    folder: Path
    user: JobUser | None = None

    @property
    def work(self) -> Path:
        """The working directory of commands."""
        return self.folder / "work"

    @property
    def home(self) -> Path:
        """HOME of commands: caches and credentials of tools are removed with the execution."""
        return self.folder / "home"

    @property
    def tmp(self) -> Path:
        """TMPDIR of commands."""
        return self.folder / "tmp"

    @property
    def inputs(self) -> Path:
        """The job's inputs as one JSON object."""
        return self.folder / "inputs.json"

    def touch(self) -> AbstractContextManager[None]:
        """Access files with the rights of the job's user in this thread; no `await` inside."""
        return touch_files(self.user)

    def write(self, file: Path, data: bytes, *, mode: int = 0o600) -> None:
        """Write a file for commands, replacing whatever a command put there."""
        with self.touch():
            write_private(file, data, mode=mode)

    def outputs(self, step: int) -> Path:
        """Return the file for the outputs of a step."""
        return self.folder / f"outputs-{step}"

    def script(self, step: int) -> Path:
        """Return the file for the script of a step."""
        return self.folder / f"script-{step}"


def prepare_workspace(
    folder: Path, user: JobUser | None = None, *, keep_free_bytes: int = KEEP_FREE_BYTES
) -> Workspace:
    """Create the folders for the job's user only; raise `WorkFailed` if the disk is nearly full."""
    check_room(folder, keep_free_bytes)
    folder.mkdir(mode=_FOLDER_MODE, exist_ok=True)
    room = folder / ROOM
    room.mkdir(mode=_FOLDER_MODE, exist_ok=True)
    room.chmod(_FOLDER_MODE)
    if user is None:
        folder.chmod(_FOLDER_MODE)
    else:
        os.chown(room, user.uid, user.gid)
    workspace = Workspace(room, user)
    with workspace.touch():
        for subfolder in (workspace.work, workspace.home, workspace.tmp):
            subfolder.mkdir(mode=_FOLDER_MODE, exist_ok=True)
            subfolder.chmod(_FOLDER_MODE)
    return workspace


@contextmanager
def find_short_tmp(workspace: Workspace) -> Iterator[Path]:
    """Yield a folder for temporary files whose path is short enough for sockets in it."""
    if len(os.fsencode(workspace.tmp)) <= _SOCKET_FOLDER:
        yield workspace.tmp
        return
    with tempfile.TemporaryDirectory(prefix="exclave-", ignore_cleanup_errors=True) as name:
        if workspace.user is not None:
            os.chown(name, workspace.user.uid, workspace.user.gid)
        yield Path(name)


def check_room(folder: Path, keep_free_bytes: int) -> None:
    """Raise if there is too little free disk space to start."""
    target = folder if folder.exists() else folder.parent
    disk = os.statvfs(target)
    free = disk.f_bavail * disk.f_frsize
    if free < keep_free_bytes:
        message = (
            f"the runner's disk has {free // _MIB} MiB left, and {keep_free_bytes // _MIB} MiB are"
            " needed to begin: free some space or give the runner a larger disk"
        )
        raise WorkFailed(Reason.DISK_FULL, message)


def write_private(file: Path, data: bytes, *, mode: int = 0o600) -> None:
    """Write a file that only this user can read, replacing whatever a command put there."""
    file.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    with os.fdopen(os.open(file, flags, mode), "wb") as out:
        out.write(data)
