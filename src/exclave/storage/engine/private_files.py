"""Files that only the user of the server may read."""

import os
import stat
from pathlib import Path

_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def create_private(file: Path) -> None:
    """Make an empty file unless there is one, and take it from others."""
    os.close(os.open(file, os.O_RDWR | os.O_CREAT, 0o600))
    make_private(file)


def make_private(file: Path) -> None:
    """Remove other users' access to an existing file, unless it belongs to another user."""
    try:
        status = file.stat()
    except FileNotFoundError:
        return
    if stat.S_IMODE(status.st_mode) & _OTHERS and status.st_uid == os.geteuid():
        file.chmod(0o600)
