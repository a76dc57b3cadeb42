"""States that could not be handed in while their execution was there: kept, and sent later."""

import json
from pathlib import Path
from typing import Any

from exclave.base.errors import Kind, Problem
from exclave.base.logs import Log
from exclave.client.problems import RemoteProblem
from exclave.client.retry import RetryPolicy
from exclave.runner.control_plane.access_token import IdentityRefused
from exclave.runner.control_plane.execution_api import Uplink
from exclave.runner.data_folder import remove_durably, write_durably
from exclave.runner.deps import Deps
from exclave.runner.terraform.unsent_state import forget_state, take_pending

_log = Log("runner.rescue")

RESCUED = "rescued"
"""The folder of these states in the runner's data folder; each is sealed."""

_EVERY_S = 600.0
_ONCE = RetryPolicy(give_up_s=0.0)


def put_by(data: Path, folder: Path, execution_id: str, epoch: int) -> None:
    """Keep the state that nobody has taken, if any, beyond the folder of its execution."""
    packed = take_pending(folder)
    if packed is None:
        return
    place = data / RESCUED
    place.mkdir(mode=0o700, exist_ok=True)
    told = json.dumps({"execution_id": execution_id, "epoch": epoch}).encode()
    write_durably(place / execution_id, told + b"\n" + packed)
    forget_state(folder)
    _log.warning("state_kept", execution_id=execution_id, file=str(place / execution_id))


async def send_rescued(deps: Deps) -> None:
    """Hand in what was put by, now and then, until it is taken; then people can restore it."""
    while True:
        for file in _list_files(deps.disk.path):
            await _send(deps, file)
        await deps.clock.sleep(_EVERY_S)


def _list_files(data: Path) -> list[Path]:
    place = data / RESCUED
    return sorted(one for one in place.iterdir() if one.is_file()) if place.is_dir() else []


def _read(file: Path) -> tuple[dict[str, Any], bytes]:
    line, _, packed = file.read_bytes().partition(b"\n")
    return json.loads(line), packed


async def _send(deps: Deps, file: Path) -> None:
    try:
        told, packed = _read(file)
        uplink = Uplink(
            deps.api,
            deps.session,
            execution_id=str(told["execution_id"]),
            epoch=int(told["epoch"]),
            link=deps.config.link,
            clock=deps.clock,
            randomness=deps.randomness,
        )
        await uplink.put_attachment("errored.tfstate.sealed", packed, _ONCE)
    except IdentityRefused:
        raise
    except (OSError, ValueError, KeyError, TypeError) as error:
        _log.error("rescued_state_unreadable", exc=error, file=str(file))
    except Problem as problem:
        final = isinstance(problem, RemoteProblem) and problem.kind is not Kind.TOO_LARGE
        _log.warning("rescued_state_not_sent", file=str(file), code=problem.code, final=final)
    else:
        remove_durably(file)
        deps.audit.write("rescued_state_sent", execution_id=file.name)
