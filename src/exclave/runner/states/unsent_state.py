"""The journal of an apply and an unsaved state, uploaded before the folder is deleted."""

import json
from pathlib import Path

from exclave.base.errors import Kind, Problem
from exclave.base.json_values import parse_object, require_text
from exclave.base.logs import Log
from exclave.client.problems import RemoteProblem
from exclave.client.retry import RetryPolicy
from exclave.runner.control_plane.access_token import IdentityRefused
from exclave.runner.control_plane.execution_api import Uplink
from exclave.runner.data_folder import sync_folder, write_durably
from exclave.wire.states import SealedState, unpack_state

_log = Log("runner.rescue")

JOURNAL = "journal.jsonl"
_JOURNAL_SENT = "journal.sent"
_PENDING = "state.pending"
_LOCK = "state.lock"


def keep_state(folder: Path, workspace: str, lock_id: str, state: SealedState) -> None:
    """Store a sealed state on disk until the control plane has it."""
    header = json.dumps({"workspace": workspace, "lock_id": lock_id}).encode()
    write_durably(folder / _PENDING, header + b"\n" + state.pack())


def note_lock(folder: Path, workspace: str, lock_id: str) -> None:
    """Record which lock was acquired, so that a later start can store a state left behind."""
    lock = {"workspace": workspace, "lock_id": lock_id}
    write_durably(folder / _LOCK, json.dumps(lock).encode())


def read_lock(folder: Path) -> tuple[str, str] | None:
    """Return the workspace and id of the lock acquired last."""
    try:
        return _read_note((folder / _LOCK).read_bytes())
    except (OSError, ValueError):
        return None


def forget_state(folder: Path) -> None:
    """Delete the pending state: the control plane has it."""
    (folder / _PENDING).unlink(missing_ok=True)
    sync_folder(folder)


def has_pending_state(folder: Path) -> bool:
    """Return whether a state was written that the control plane does not have."""
    return (folder / _PENDING).exists()


def read_pending(folder: Path) -> bytes | None:
    """Return the packed state that was not uploaded; None if there is none."""
    try:
        return (folder / _PENDING).read_bytes().partition(b"\n")[2]
    except FileNotFoundError:
        return None


async def send_journal(folder: Path, uplink: Uplink, policy: RetryPolicy) -> None:
    """Upload the journal, unless it has not grown since the last upload."""
    journal, sent = folder / JOURNAL, folder / _JOURNAL_SENT
    if not journal.exists():
        return
    data = journal.read_bytes()
    if sent.exists() and sent.read_text() == str(len(data)):
        return
    try:
        await uplink.put_attachment("journal.jsonl", data, policy)
    except RemoteProblem as problem:
        if problem.kind is Kind.TOO_LARGE:  # a retry with the same bytes would fail too
            sent.write_text(str(len(data)))
        raise
    sent.write_text(str(len(data)))


async def rescue(folder: Path, uplink: Uplink, policy: RetryPolicy) -> None:
    """Upload journal and state; both stay on disk while the control plane does not respond."""
    for send in (send_journal, _send_state):
        try:
            await send(folder, uplink, policy)
        except IdentityRefused:
            raise
        except Problem as problem:
            _log.warning("rescue_failed", execution_id=uplink.execution_id, code=problem.code)


async def _send_state(folder: Path, uplink: Uplink, policy: RetryPolicy) -> None:
    """Store the pending state as a version; if that is refused, upload it as an attachment."""
    file = folder / _PENDING
    if not file.exists():
        return
    line, _, packed = file.read_bytes().partition(b"\n")
    (workspace, lock_id), state = _read_note(line), unpack_state(packed)
    try:
        await uplink.write_state(workspace, lock_id, state, policy)
    except RemoteProblem as problem:
        _log.warning("state_refused", execution_id=uplink.execution_id, code=problem.code)
        await uplink.put_attachment("errored.tfstate.sealed", packed, policy)
    forget_state(folder)


def _read_note(data: bytes) -> tuple[str, str]:
    """Return the workspace and the id of the lock; `ValueError` if the note has another shape."""
    note = parse_object(data, "the note of a lock")
    names = ("workspace", "lock_id")
    workspace, lock_id = (require_text(note.get(name), f"`{name}`") for name in names)
    return workspace, lock_id
