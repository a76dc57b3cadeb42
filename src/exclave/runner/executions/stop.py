"""Stop requests to executions: cancel, supersession, the dead-man timer, shutdown."""

from exclave.runner.executions.deps import Deps
from exclave.runner.executions.kill_switch import ThrownBy, is_disabled_by
from exclave.runner.executions.roster import Execution, Phase
from exclave.wire.jobs import Reason

_SUPERSEDED_GRACE_S = 5.0
_READ_ONLY_SHARE = 0.1
"""Read-only jobs are offered again soon after the dead-man time: their grace must be short."""
_SHUTDOWN_GRACE_S = 10.0
_DISABLED_GRACE_S = 90.0
"""The kill switch promises an end within two minutes, whatever the control plane allows."""
_DISABLED_BY_STACK_GRACE_S = 60.0
"""Less, because it takes up to half a minute until the runner sees it."""


def cancel(deps: Deps, execution: Execution) -> None:
    """Stop an execution because it was cancelled."""
    if execution.stop.reason is None and execution.phase is not Phase.ENDED:
        deps.audit.write("cancel_received", execution_id=execution.id)
        execution.stop.request(Reason.CANCELLED, choose_grace(deps, execution))


def disable(deps: Deps, execution: Execution) -> None:
    """Stop an execution because the customer has disabled the runner."""
    deps.audit.write("disabled_execution", execution_id=execution.id)
    by_stack = is_disabled_by(deps.disk.path, ThrownBy.STACK)
    longest = _DISABLED_BY_STACK_GRACE_S if by_stack else _DISABLED_GRACE_S
    execution.stop.request(Reason.DISABLED, min(choose_grace(deps, execution), longest))


def lose_touch(deps: Deps, silent_s: float) -> None:
    """Stop what runs if the customer's Stack was silent for too long: it may have been disabled."""
    timings = deps.timings
    for execution in deps.roster.list_alive():
        patience = timings.deadman_mutating_s if execution.mutating else timings.deadman_read_only_s
        is_running = execution.phase is not Phase.ENDED and execution.stop.reason is None
        if is_running and silent_s > patience:
            deps.audit.write("stack_out_of_reach", execution_id=execution.id)
            execution.stop.request(Reason.DEADMAN, choose_grace(deps, execution))


def supersede(deps: Deps, execution: Execution) -> None:
    """Stop an execution at once: another one has taken over, and no success may be reported."""
    if execution.superseded or execution.phase is Phase.ENDED:
        return
    execution.superseded = True
    deps.audit.write("superseded_received", execution_id=execution.id)
    execution.stop.request(Reason.RUNNER_STOPPED_IT, _SUPERSEDED_GRACE_S)


def shut_down(deps: Deps, execution: Execution) -> None:
    """Stop an execution because the runner shuts down."""
    if execution.phase is not Phase.ENDED:
        grace = choose_grace(deps, execution)
        short = grace if execution.mutating else min(grace, _SHUTDOWN_GRACE_S)
        execution.stop.request(Reason.RUNNER_RESTARTED, short)


async def watch_deadman(deps: Deps, execution: Execution) -> None:
    """Stop executions that were not confirmed for too long, by the monotonic clock."""
    while (left := _count_down(deps, execution)) > 0:
        await deps.clock.sleep(left)
    if execution.stop.reason is None:
        deps.audit.write("deadman_fired", execution_id=execution.id)
        grace = choose_grace(deps, execution)
        if not execution.mutating:
            grace = min(grace, _READ_ONLY_SHARE * deps.timings.deadman_read_only_s)
        execution.stop.request(Reason.DEADMAN, grace)


def is_unconfirmed(deps: Deps, execution: Execution) -> bool:
    """Return whether the last confirmation is older than the dead-man time."""
    return _count_down(deps, execution) <= 0


def choose_grace(deps: Deps, execution: Execution) -> float:
    """Return the grace period of a stop request."""
    timings = deps.timings
    return timings.cancel_grace_mutating_s if execution.mutating else timings.cancel_grace_s


def _count_down(deps: Deps, execution: Execution) -> float:
    timings = deps.timings
    limit = timings.deadman_mutating_s if execution.mutating else timings.deadman_read_only_s
    return execution.confirmed_at + limit - deps.clock.monotonic()
