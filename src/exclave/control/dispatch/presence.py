"""Presence of runners: every contact of a runner sets when the next one is due."""

from datetime import datetime, timedelta
from typing import Any

from exclave.control.deps import Deps
from exclave.domain.identity import RunnerIdentity
from exclave.domain.presence import Presence, decide_presence
from exclave.storage import runners
from exclave.storage.engine.database import AnyRow, Tx

_RECONNECT_S = 3.0
"""A runner whose connection closed usually comes back within this time."""


def expect_next(tx: Tx, deps: Deps, *, busy: bool) -> datetime:
    """Return when the next contact of a runner is due."""
    timings = deps.timings
    renew = deps.parked_polls.renew_s(timings, busy=busy)
    return tx.now + timedelta(seconds=renew + timings.late_after_s - timings.renew_s)


def find_presence(deps: Deps, row: AnyRow, now: datetime) -> Presence:
    """Return whether a runner is up, late, lost or disabled."""
    disabled = bool(row.stats.get("disabled"))
    return decide_presence(row.seen_at, row.due_at, row.cause, now, deps.timings, disabled=disabled)


def latest_lost_due(tx: Tx, deps: Deps) -> datetime:
    """Return the latest due time at which a runner counts as lost."""
    timings = deps.timings
    return tx.now - timedelta(seconds=timings.lost_after_s - timings.late_after_s)


async def note_disconnect(deps: Deps, who: RunnerIdentity, boot: int, poll_no: int) -> None:
    """Bring forward when a runner is due, after its poll's connection closed before the reply."""

    def note(tx: Tx) -> None:
        row = runners.find_runner(tx, who.org, who.runner, lock=True)
        if row is None or (row.boot, row.poll_no) != (boot, poll_no):
            return
        due = tx.now + timedelta(seconds=_RECONNECT_S)
        values: dict[str, Any] = {"poll_free": 0}
        if row.due_at is None or due < row.due_at:
            values |= {"due_at": due, "cause": "the runner closed its connection or was killed"}
        runners.update_runner(tx, who.org, who.runner, values)

    await deps.db.write(note, key=who.queue)
