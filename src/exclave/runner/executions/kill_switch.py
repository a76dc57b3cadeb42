"""The customer's kill switch: a marker in the runner's data folder that outlives restarts."""

import json
from datetime import datetime
from enum import StrEnum
from pathlib import Path

from exclave.runner.data_folder import sync_folder, write_durably


class ThrownBy(StrEnum):
    """Who threw the switch; the value is the name of the marker. Each undoes only its own."""

    HAND = "disabled"
    """A person on the machine."""
    STACK = "disabled_by_stack"
    """The customer's Stack: its document says so, or cannot be read any more."""


def is_disabled(data: Path) -> bool:
    """Return whether the customer has disabled the runner of this data folder."""
    return any((data / marker).exists() for marker in ThrownBy)


def is_disabled_by(data: Path, by: ThrownBy) -> bool:
    """Return whether this is one of those who disabled the runner."""
    return (data / by).exists()


def disable_runner(data: Path, at: datetime, by: ThrownBy = ThrownBy.HAND) -> bool:
    """Disable the runner of this data folder; return False if it was disabled so already."""
    if is_disabled_by(data, by):
        return False
    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_durably(data / by, json.dumps({"at": at.isoformat()}).encode())
    return True


def enable_runner(data: Path, by: ThrownBy = ThrownBy.HAND) -> bool:
    """Undo what this one did; return False if it had not disabled the runner."""
    if not is_disabled_by(data, by):
        return False
    (data / by).unlink()
    sync_folder(data)
    return True
