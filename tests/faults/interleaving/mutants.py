"""The control plane with one condition or lock taken out, and the scenario that has to notice."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from unittest.mock import patch

from exclave.domain.identity import OrgId
from exclave.domain.installs import Install
from exclave.domain.schedules import Schedule
from exclave.storage import builds, executions, installs, schedules
from exclave.storage.engine.database import Tx
from exclave.storage.executions import OPEN, Expected, Held
from tests.faults.interleaving import scenarios
from tests.faults.interleaving.hooks import Rewrite

_end, _take_tick, _has_pending = executions.end, schedules.claim_tick, builds.has_pending
_find_install = installs.find_install


@dataclass(frozen=True, slots=True)
class Mutant:
    """A condition that is missing."""

    name: str
    noticed_by: scenarios.Play
    patches: tuple[tuple[object, str, Callable[..., Any]], ...] = ()
    rewrite: Rewrite | None = None

    @contextmanager
    def alive(self) -> Iterator[None]:
        """Take the condition out for a while."""
        with ExitStack() as undo:
            for where, name, value in self.patches:
                undo.enter_context(patch.object(where, name, value))
            yield


def _end_in_any_state(tx: Tx, org: OrgId, held: Held, expected: Expected, *ending: Any) -> bool:
    return _end(tx, org, held, Expected(OPEN.states, expected.silent_since), *ending)


def _end_however_renewed(tx: Tx, org: OrgId, held: Held, expected: Expected, *ending: Any) -> bool:
    return _end(tx, org, held, Expected(expected.states), *ending)


def _take_any_tick(tx: Tx, due: Schedule, next_at: datetime) -> bool:
    _take_tick(tx, due, next_at)
    return True


def _hold_nothing(tx: Tx, org: OrgId, config_id: str, *, hold: bool = False) -> bool:
    return _has_pending(tx, org, config_id)


def _find_then_lock(tx: Tx, org: OrgId, install: str, *, lock: bool = False) -> Install | None:
    found = _find_install(tx, org, install)
    installs.lock_install(tx, org, install)
    return found


def _forget_cancels(sql: str) -> str:
    return sql.replace("AND jobs.cancel_requested_at IS NULL", "")


def _lock_no_queue(sql: str) -> str:
    return sql.replace("FOR UPDATE", "") if "AS generation" in sql else sql


def _lock_no_workflow(sql: str) -> str:
    own = sql.startswith("SELECT workflows.org_id")
    return sql.replace("FOR UPDATE", "") if own else sql


MUTANTS = (
    Mutant("an ending expects no state", scenarios.start_and_withdraw,
           ((executions, "end", _end_in_any_state),)),
    Mutant("a poll withdraws what was started", scenarios.start_and_poll_again,
           ((executions, "end", _end_in_any_state),)),
    Mutant("silence is decided before the end", scenarios.renew_and_silence,
           ((executions, "end", _end_however_renewed),)),
    Mutant("a cancelled job is queued again", scenarios.cancel_and_start,
           rewrite=_forget_cancels),
    Mutant("a tick is taken by all who see it", scenarios.ticks,
           ((schedules, "claim_tick", _take_any_tick),)),
    Mutant("claims do not take turns", scenarios.lanes, rewrite=_lock_no_queue),
    Mutant("workflows are not locked", scenarios.timers, rewrite=_lock_no_workflow),
    Mutant("builds end while somebody begins to wait", scenarios.builds_and_waits,
           ((builds, "has_pending", _hold_nothing),)),
    Mutant("an install is read before its lock", scenarios.installs_locked,
           ((installs, "find_install", _find_then_lock),)),
)  # fmt: skip
