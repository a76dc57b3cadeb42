"""The background tasks of a server."""

from datetime import timedelta
from functools import partial

from exclave.control import chores
from exclave.control.background import timers
from exclave.control.background.sweeper import LOST, Sweeper
from exclave.control.chores import Chore, RowWorker
from exclave.control.deps import Deps
from exclave.control.installs import scheduler
from exclave.control.limits import usage_counting
from exclave.control.logs import merge
from exclave.control.registry import gc
from exclave.storage import audit, install_identities, registry_tokens, runner_access
from exclave.storage.engine.database import Tx

PEERS = "peers"
"""Nobody waits for it: the other servers hear that this one is there."""
_REPLIES_KEPT = timedelta(hours=24)
_FORGET_S = 15.0
_GARBAGE_AFTER_S = 60.0
"""A server that just started has more urgent things to do."""


def list_chores(deps: Deps) -> list[Chore]:
    """Return the chores of a server; each runs as a task of its own."""
    sweeper = Sweeper(deps)
    return [
        Chore("announce", partial(_announce, deps)),
        Chore(LOST, sweeper.sweep),
        Chore(
            timers.TIMERS,
            partial(timers.ring_timers, deps, RowWorker(deps, timers.TIMERS)),
            wakes=("timers",),
        ),
        Chore(timers.UNMOVED, partial(timers.move_unmoved, deps, RowWorker(deps, timers.UNMOVED))),
        Chore(
            scheduler.SCHEDULES,
            partial(scheduler.run_due, deps, RowWorker(deps, scheduler.SCHEDULES)),
            wakes=("schedules",),
        ),
        Chore("forget", partial(_forget, deps)),
        Chore("accounting", partial(_settle, deps)),
        Chore(merge.CHORE, partial(_merge_logs, deps)),
        Chore(gc.GARBAGE, partial(gc.collect_due, deps), first_s=_GARBAGE_AFTER_S),
    ]


async def _announce(deps: Deps) -> float:
    deps.hub.note_round()
    await deps.db.write(lambda tx: tx.wake(PEERS))
    return chores.PACE_S


async def _forget(deps: Deps) -> float:
    def forget(tx: Tx) -> None:
        runner_access.drop_expired(tx)
        registry_tokens.drop_expired_registry_tokens(tx)
        audit.drop_old_replies(tx, _REPLIES_KEPT)
        install_identities.drop_expired_nonces(tx)

    await deps.db.write(forget)
    return _FORGET_S


async def _settle(deps: Deps) -> float:
    await usage_counting.settle(deps)
    return usage_counting.EVERY_S


async def _merge_logs(deps: Deps) -> float:
    """Merge a batch of logs; if there are more, the next round follows at once."""
    return 0.0 if await merge.merge_logs(deps) else chores.PACE_S
