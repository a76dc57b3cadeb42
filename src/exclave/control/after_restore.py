"""Invalidate, after a restore, what runners and jobs did since the backup was made."""

from dataclasses import dataclass

from exclave.control.deps import Deps
from exclave.control.dispatch.completion import end_interrupted, withdraw_offers
from exclave.domain.jobs import ExecutionState, Reason
from exclave.storage import executions, keys, queues, runner_access
from exclave.storage.engine.database import Tx
from exclave.storage.executions import STARTED


@dataclass(frozen=True, slots=True)
class Restored:
    """What was changed after the restore."""

    generation: int
    interrupted: int
    blocked_lanes: int


def settle_restore(tx: Tx, deps: Deps) -> Restored:
    """Raise the generation of epochs, end running executions, accept any token generation once.

    Epochs and envelope numbers handed out after the backup are lower than all to come, so a
    runner that still works on such an execution is refused. Changes that were still to come when
    the backup was made may have happened since: their lanes wait for a look. Runners present
    whatever token generation they have reached; the first one seen counts from here.
    """
    generation = keys.raise_generation(tx)
    open_ones = executions.list_unended(tx)
    offers = [execution for execution in open_ones if execution.state is ExecutionState.OFFERED]
    running = [execution for execution in open_ones if execution.state is ExecutionState.RUNNING]
    withdraw_offers(tx, deps, offers)
    for execution in running:
        end_interrupted(tx, deps, execution, Reason.RESTORED, STARTED)
    runner_access.forget_generations(tx)
    why = "restored: what was still to be done here may have been done since the backup"
    blocked = queues.block_wanted_lanes(tx, generation, why)
    return Restored(generation, len(running), blocked)
