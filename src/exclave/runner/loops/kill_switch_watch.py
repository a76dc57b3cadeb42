"""Watches the kill switch: checks it every second, stops all jobs, reports it at once."""

from exclave.base.logs import Log
from exclave.runner.executions.deps import Deps
from exclave.runner.executions.kill_switch import ThrownBy, is_disabled, is_disabled_by
from exclave.runner.executions.roster import Execution, Phase
from exclave.runner.executions.stop import disable
from exclave.runner.wakeups import wait_first

_log = Log("runner.switch")

LOOK_EVERY_S = 1.0
_HARD_AFTER_S = 110.0
"""The time from the detection of the switch until remaining processes are killed."""
_HARD_AFTER_STACK_S = 68.0
"""The same, if it is the Stack's document that says so: see `document_watch.READ_WITHIN_S`."""


async def watch_switch(deps: Deps) -> None:
    """Stop all jobs when the runner is disabled, and report it; accept jobs again afterwards."""
    was = False
    while True:
        now = is_disabled(deps.disk.path)
        if now != was:
            was = now
            _log.warning("switch_changed", disabled=now)
            deps.audit.write("disabled" if now else "enabled")
            deps.signals.changed.fire()
            deps.signals.renew_soon.set()
        if now:
            _stop_all(deps)
        await deps.clock.sleep(LOOK_EVERY_S)


def _stop_all(deps: Deps) -> None:
    for execution in deps.roster.list_alive():
        if execution.phase is not Phase.ENDED and execution.stop.reason is None:
            disable(deps, execution)
            deps.spawn(_end_hard(deps, execution), f"disabling {execution.id}")


async def _end_hard(deps: Deps, execution: Execution) -> None:
    """Kill remaining processes, in case an executor does not end in time."""
    by_stack = is_disabled_by(deps.disk.path, ThrownBy.STACK)
    until = deps.clock.monotonic() + (_HARD_AFTER_STACK_S if by_stack else _HARD_AFTER_S)
    while execution.phase is not Phase.ENDED:
        left = until - deps.clock.monotonic()
        if left <= 0:
            deps.audit.write("killed_by_switch", execution_id=execution.id)
            await deps.kill_leftovers(execution.folder, deps.clock)
            return
        await wait_first(deps.clock, left, deps.signals.changed.wait())
