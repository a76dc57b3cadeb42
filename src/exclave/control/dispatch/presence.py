"""Presence of runners: every contact of a runner sets when the next one is due."""

from datetime import datetime, timedelta

from exclave.control.deps import Deps
from exclave.domain.identity import RunnerIdentity
from exclave.domain.presence import Presence, decide_presence
from exclave.domain.runners import Runner
from exclave.storage import runners
from exclave.storage.engine.database import Tx

_RECONNECT_S = 3.0
"""A runner whose connection closed usually comes back within this time."""
_DISCONNECTED = "the runner closed its connection or was killed"


def expect_next(tx: Tx, deps: Deps, *, busy: bool) -> datetime:
    """Return when the next contact of a runner is due."""
    timings = deps.timings
    renew = deps.parked_polls.renew_s(timings, busy=busy)
    return tx.now + timedelta(seconds=renew + timings.late_after_s - timings.renew_s)


def find_presence(deps: Deps, runner: Runner, now: datetime) -> Presence:
    """Return whether a runner is up, late, lost or disabled."""
    return decide_presence(
        runner.seen_at,
        runner.due_at,
        runner.cause,
        now,
        deps.timings,
        disabled=bool(runner.stats.get("disabled")),
    )


def latest_lost_due(tx: Tx, deps: Deps) -> datetime:
    """Return the latest due time at which a runner counts as lost."""
    timings = deps.timings
    return tx.now - timedelta(seconds=timings.lost_after_s - timings.late_after_s)


async def note_disconnect(deps: Deps, who: RunnerIdentity, boot: int, poll_no: int) -> None:
    """Bring forward when a runner is due, after its poll's connection closed before the reply."""

    def note(tx: Tx) -> None:
        runner = runners.find_runner(tx, who.org, who.runner, lock=True)
        if runner is None or (runner.boot, runner.poll_no) != (boot, poll_no):
            return
        due = tx.now + timedelta(seconds=_RECONNECT_S)
        is_earlier = runner.due_at is None or due < runner.due_at
        runners.note_disconnect(
            tx, who.org, who.runner, due=due if is_earlier else None, cause=_DISCONNECTED
        )

    await deps.db.write(note, key=who.queue)
