"""Waits for a moment at which no job runs, so that the runner or its machine can be restarted."""

from typing import Final

from exclave.runner.executions.deps import Deps
from exclave.runner.wakeups import wait_first

PATIENCE_S: Final = 6 * 3600.0
"""How long a runner that is never idle goes on accepting jobs."""
_LOOK_EVERY_S: Final = 30.0


async def retire(deps: Deps, why: str) -> None:
    """Wait until no job runs; accept none from then on, or from the end of the patience on."""
    began = deps.clock.monotonic()
    while deps.roster.list_alive():
        if deps.clock.monotonic() - began > PATIENCE_S:
            deps.gate.retiring_because = why
        await wait_first(deps.clock, _LOOK_EVERY_S, deps.signals.changed.wait())
    deps.gate.retiring_because = why
