"""The state that Terraform leaves on disk when it could not store it: sealed, and handed in."""

from pathlib import Path

from exclave.base.logs import Log
from exclave.client.retry import RetryPolicy
from exclave.runner.placeholders import STATE
from exclave.runner.rescue import MODULE, has_pending_state, keep_state, read_lock, rescue
from exclave.runner.sealing import Purpose, Sealer
from exclave.runner.terraform.states import describe_state
from exclave.runner.uplink import Uplink
from exclave.runner.users import find_owner, touch_files
from exclave.runner.work import WorkFailed
from exclave.runner.workspaces import ROOM
from exclave.wire.terraform import SealedState

_log = Log("runner.rescue")

ERRORED = "errored.tfstate"


async def rescue_all(folder: Path, uplink: Uplink, sealer: Sealer, policy: RetryPolicy) -> None:
    """Hand in whatever an execution must not take with it."""
    seal_errored(folder, uplink, sealer)
    await rescue(folder, uplink, policy)


def seal_errored(folder: Path, uplink: Uplink, sealer: Sealer) -> None:
    """Seal the state that Terraform left, in place of an older one that waits; then remove it."""
    file, lock = folder / MODULE / ERRORED, read_lock(folder)
    if lock is None or not (folder / ROOM).is_dir():
        return
    workspace, lock_id = lock
    with touch_files(find_owner(folder / ROOM)):
        if not file.is_file() or file.is_symlink():
            return
        data = file.read_bytes()
    try:
        header = describe_state(data, lambda text: text)
        purpose = Purpose(uplink.org_id, uplink.queue_id, workspace, STATE)
        state = SealedState(header=header, sealed=sealer.seal(data, purpose))
    except (ValueError, KeyError, TypeError, WorkFailed) as error:
        _log.error("errored_state_unreadable", exc=error, execution_id=uplink.execution_id)
        return
    keep_state(folder, workspace, lock_id, state)
    with touch_files(find_owner(folder / ROOM)):
        file.unlink()


def was_left(folder: Path) -> bool:
    """Tell whether a state waits to be handed in."""
    return has_pending_state(folder) or (folder / MODULE / ERRORED).exists()
