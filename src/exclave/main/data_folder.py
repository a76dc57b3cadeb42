"""The data folder of the control plane, which only its user may read."""

import os
import stat
from pathlib import Path

from exclave.base.errors import InvalidInput
from exclave.base.logs import Log

log = Log("main")

_OURS = frozenset({"exclave.db", "seal.key", "server.lock", "blobs"})
PRIVATE = 0o077
"""Files of a control plane are private to its user: the database contains data of all tenants,
and the seal key decrypts what is encrypted in it."""


def set_private_umask() -> None:
    """Make all files that this process creates private to its user.

    Not for a process whose children run jobs, which create files for others.
    """
    os.umask(PRIVATE)


def prepare_data_folder(folder: Path) -> None:
    """Create the folder or make it private; refuse one that others share."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    info = folder.stat()
    if not stat.S_IMODE(info.st_mode) & PRIVATE:
        return
    if info.st_uid == os.geteuid() and _is_ours(folder):
        folder.chmod(0o700)
        log.warning("data_folder_tightened", folder=str(folder), mode="0700")
        return
    if stat.S_IMODE(info.st_mode) & stat.S_IRWXO:
        raise InvalidInput(
            f"everybody on this machine can look into the data folder {folder}",
            hint="Use a folder of its own for the data, owned by the user of the server, or take"
            f" it from others: chmod o-rwx {folder}",
        )
    log.warning("data_folder_shared_with_group", folder=str(folder))


def _is_ours(folder: Path) -> bool:
    """Return whether a folder is empty or holds our files; any other may be shared on purpose."""
    names = {entry.name for entry in folder.iterdir()}
    return not names or bool(names & _OURS)
