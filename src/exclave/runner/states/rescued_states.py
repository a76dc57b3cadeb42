"""States that could not be uploaded at the end of their execution: kept, sent later."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from exclave.base.clock import Clock
from exclave.base.errors import Kind, Problem
from exclave.base.json_values import parse_object, require_text
from exclave.base.logs import Log
from exclave.client.problems import RemoteProblem
from exclave.client.retry import RetryPolicy
from exclave.runner.audit import Audit
from exclave.runner.control_plane.access_token import IdentityRefused
from exclave.runner.control_plane.execution_api import Uplink
from exclave.runner.data_folder import remove_durably, write_durably
from exclave.runner.jobs.executor import EndedRun
from exclave.runner.states.unsent_state import forget_state, read_pending, rescue

_log = Log("runner.rescue")

OpenUplink = Callable[[str, int], Uplink]
"""Return the uplink of an execution, by its id and epoch."""

RESCUED = "rescued"
"""The folder of these states in the runner's data folder; each is sealed."""

_EVERY_S = 600.0
_ONCE = RetryPolicy(give_up_s=0.0)


async def settle_state(ended: EndedRun) -> None:
    """Upload journal and unsaved state of an ended execution; keep the state if that fails."""
    uplink = ended.uplink
    await rescue(ended.folder, uplink, ended.patience)
    packed = read_pending(ended.folder)
    if packed is None:
        return
    rescued = ended.data / RESCUED
    rescued.mkdir(mode=0o700, exist_ok=True)
    header = {"execution_id": uplink.execution_id, "epoch": uplink.epoch}
    file = rescued / uplink.execution_id
    write_durably(file, json.dumps(header).encode() + b"\n" + packed)
    forget_state(ended.folder)
    _log.warning("state_kept", execution_id=uplink.execution_id, file=str(file))


async def send_rescued(data: Path, open_uplink: OpenUplink, *, clock: Clock, audit: Audit) -> None:
    """Upload the kept states every ten minutes until they are accepted. Never returns."""
    while True:
        for file in _list_files(data):
            await _send(file, open_uplink, audit)
        await clock.sleep(_EVERY_S)


def _list_files(data: Path) -> list[Path]:
    folder = data / RESCUED
    return sorted(file for file in folder.iterdir() if file.is_file()) if folder.is_dir() else []


class _KeptState(NamedTuple):
    execution_id: str
    epoch: int
    packed: bytes


def _read(file: Path) -> _KeptState:
    line, _, packed = file.read_bytes().partition(b"\n")
    header = parse_object(line, "the first line")
    epoch = header.get("epoch")
    if not isinstance(epoch, int):
        message = "`epoch` is not a number"
        raise ValueError(message)  # noqa: TRY004 - a wrong document
    return _KeptState(require_text(header.get("execution_id"), "`execution_id`"), epoch, packed)


async def _send(file: Path, open_uplink: OpenUplink, audit: Audit) -> None:
    try:
        kept = _read(file)
        uplink = open_uplink(kept.execution_id, kept.epoch)
        await uplink.put_attachment("errored.tfstate.sealed", kept.packed, _ONCE)
    except IdentityRefused:
        raise
    except (OSError, ValueError) as error:
        _log.error("rescued_state_unreadable", exc=error, file=str(file))
    except Problem as problem:
        final = isinstance(problem, RemoteProblem) and problem.kind is not Kind.TOO_LARGE
        _log.warning("rescued_state_not_sent", file=str(file), code=problem.code, final=final)
    else:
        remove_durably(file)
        audit.write("rescued_state_sent", execution_id=file.name)
