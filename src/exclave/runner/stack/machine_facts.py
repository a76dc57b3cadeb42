"""The facts that a Stack reports about its machine, limited to what the app needs."""

import os
import platform
import sys
from pathlib import Path

from exclave.runner.stack.folder import StackFolder

_ZONE = Path("/etc/localtime")


def collect_facts(folder: StackFolder, *, isolated: bool) -> dict[str, str]:
    """Return the facts that become the Stack's outputs."""
    return {
        "hostname": platform.node(),
        "os": platform.system().lower(),
        "os_version": platform.release(),
        "arch": platform.machine(),
        "python": platform.python_version(),
        "python_path": sys.executable,
        "folder": str(folder.path),
        "data_folder": str(folder.runner),
        "time_zone": _find_zone(),
        "user": str(os.getuid()),
        "jobs_isolated": "true" if isolated else "false",
    }


def _find_zone() -> str:
    """Return the IANA name of the machine's time zone, if it can be found out."""
    try:
        target = str(_ZONE.resolve(strict=True))
    except OSError:
        return "UTC"
    return target.partition("zoneinfo/")[2] or "UTC"
