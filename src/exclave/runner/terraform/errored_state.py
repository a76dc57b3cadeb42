"""The state that Terraform leaves on disk if it could not store it: encrypted and uploaded."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from exclave.base.logs import Log
from exclave.client.retry import RetryPolicy
from exclave.runner.control_plane.execution_api import Uplink
from exclave.runner.jobs.placeholders import STATE
from exclave.runner.jobs.workspace import ROOM
from exclave.runner.logs.masking import Mask, mask_text
from exclave.runner.logs.pattern_index import Needles
from exclave.runner.logs.secret_spellings import find_needles
from exclave.runner.outcomes import WorkFailed
from exclave.runner.processes.users import find_owner, touch_files
from exclave.runner.secrets.sealing import Purpose, Sealer
from exclave.runner.states.unsent_state import (
    has_pending_state,
    keep_state,
    read_lock,
    rescue,
)
from exclave.runner.terraform.module import MODULE
from exclave.runner.terraform.state_document import parse_state
from exclave.runner.terraform.state_store import describe_state, list_sensitive
from exclave.wire.states import SealedState

_log = Log("runner.rescue")

ERRORED = "errored.tfstate"
_LEFT = (MODULE / ERRORED).relative_to(ROOM)


async def rescue_all(
    folder: Path, uplink: Uplink, sealer: Sealer, policy: RetryPolicy, mask: Mask
) -> None:
    """Upload the journal and the unsaved state of an execution."""
    seal_errored(folder, uplink, sealer, mask)
    await rescue(folder, uplink, policy)


def seal_errored(folder: Path, uplink: Uplink, sealer: Sealer, mask: Mask) -> None:
    """Encrypt the state that Terraform left, replacing an older pending one; then remove it."""
    room, lock = folder / ROOM, read_lock(folder)
    if lock is None or not room.is_dir():
        return
    data = _read_left(room)
    if data is None:
        return
    workspace, lock_id = lock
    try:
        document = parse_state(data)
        marked = Needles(find_needles(list_sensitive(document)))
        header = describe_state(document, data, lambda text: mask_text(marked, mask(text)))
        purpose = Purpose(uplink.org_id, uplink.queue_id, workspace, STATE)
        state = SealedState(header=header, sealed=sealer.seal(data, purpose))
    except (ValueError, WorkFailed) as error:
        _log.error("errored_state_unreadable", exc=error, execution_id=uplink.execution_id)
        return
    keep_state(folder, workspace, lock_id, state)
    with _enter(room) as at:
        os.unlink(_LEFT, dir_fd=at)


def _read_left(room: Path) -> bytes | None:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
    with _enter(room) as at:
        try:
            file = os.open(_LEFT, flags, dir_fd=at)
        except FileNotFoundError:
            return None
        except OSError as error:  # a link, or a folder that the job made unreadable
            _log.error("errored_state_unreadable", exc=error, folder=str(room))
            return None
        with os.fdopen(file, "rb") as stream:
            return stream.read() if stat.S_ISREG(os.fstat(file).st_mode) else None


@contextmanager
def _enter(room: Path) -> Iterator[int]:
    """Access the folder as the job's user, who can no longer enter it from outside."""
    handle = os.open(room, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        with touch_files(find_owner(room)):
            yield handle
    finally:
        os.close(handle)


def was_left(folder: Path) -> bool:
    """Return whether a state waits to be uploaded."""
    return has_pending_state(folder) or (folder / MODULE / ERRORED).exists()
