"""The customer's kill switch: a marker in the runner's data folder that outlives restarts."""

import json
from datetime import datetime
from pathlib import Path

from exclave.runner.data_folder import sync_folder, write_durably

_MARKER = "disabled"


def is_disabled(data: Path) -> bool:
    """Return whether the customer has disabled the runner of this data folder."""
    return (data / _MARKER).exists()


def disable_runner(data: Path, at: datetime) -> bool:
    """Disable the runner of this data folder; return False if it was disabled already."""
    if is_disabled(data):
        return False
    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_durably(data / _MARKER, json.dumps({"at": at.isoformat()}).encode())
    return True


def enable_runner(data: Path) -> bool:
    """Enable the runner again; return False if it was not disabled."""
    if not is_disabled(data):
        return False
    (data / _MARKER).unlink()
    sync_folder(data)
    return True
