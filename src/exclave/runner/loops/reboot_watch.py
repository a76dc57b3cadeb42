"""Reboots the machine of a runner in a cloud when its system asks for it and no job runs."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from exclave.base.logs import Log
from exclave.runner.executions.deps import Deps
from exclave.runner.loops.retiring import retire

_log = Log("runner.reboot")

WANTED: Final = Path("/run/reboot-required")
"""Ubuntu writes it when an update has replaced what only a reboot can replace."""
_LOOK_EVERY_S: Final = 60.0
_AGAIN_AFTER_S: Final = 3600.0
_WITHIN_S: Final = 30.0

Reboot = Callable[[], Awaitable[bool]]


async def watch_reboot(deps: Deps, wanted: Path, reboot: Reboot) -> None:
    """Reboot when it is wanted and the runner is idle; go on with jobs if that fails."""
    while True:
        while not _is_there(wanted):
            await deps.clock.sleep(_LOOK_EVERY_S)
        await retire(deps, "the machine reboots")
        deps.audit.write("reboot_begins")
        if not await reboot():
            _log.error("reboot_failed")
            deps.gate.retiring_because = ""
        await deps.clock.sleep(_AGAIN_AFTER_S)


async def reboot_machine() -> bool:
    """Let systemd reboot this machine, which ends the runner as usual; return False if it won't."""
    try:
        process = await asyncio.create_subprocess_exec("systemctl", "reboot")
        return await asyncio.wait_for(process.wait(), _WITHIN_S) == 0
    except (OSError, TimeoutError):
        return False


def _is_there(file: Path) -> bool:
    return file.exists()
