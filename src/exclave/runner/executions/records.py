"""Records on disk of an accepted execution, read at the next start."""

from pathlib import Path

from exclave.runner.data_folder import DataFolder
from exclave.wire.model import Id, Reply
from exclave.wire.runner import Count, Dispatch

_RECORD = "execution.json"
_BEGUN = "begun"


class ExecutionRecord(Reply):
    """An execution that was accepted."""

    execution_id: Id
    job_id: Id
    epoch: Count
    mutating: bool


def write_record(disk: DataFolder, folder: Path, dispatch: Dispatch) -> None:
    """Store the record of an accepted execution; a folder without it is ignored."""
    record = ExecutionRecord(
        execution_id=dispatch.execution_id,
        job_id=dispatch.job_id,
        epoch=dispatch.epoch,
        mutating=dispatch.mutating,
    )
    disk.write(folder / _RECORD, record.model_dump_json().encode())


def read_record(folder: Path) -> ExecutionRecord | None:
    """Return the record; None if there is none."""
    file = folder / _RECORD
    return ExecutionRecord.model_validate_json(file.read_bytes()) if file.exists() else None


def forget_record(disk: DataFolder, folder: Path) -> None:
    """Delete the record: the execution has ended, and the next start only cleans up."""
    if folder.exists():
        disk.remove(folder / _RECORD)


def mark_begun(disk: DataFolder, folder: Path) -> None:
    """Record, before the first command, that something may have been changed."""
    disk.write(folder / _BEGUN, b"")


def has_begun(folder: Path) -> bool:
    """Return whether any command may have run."""
    return (folder / _BEGUN).exists()
