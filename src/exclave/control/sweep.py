"""Slow repairs: silent executions, forgotten offers, due timers, missed wake-ups."""

from datetime import datetime, timedelta

from exclave.base.logs import Log
from exclave.control.advance import Happening, advance
from exclave.control.deps import Deps
from exclave.control.endings import end_interrupted, withdraw_offers
from exclave.control.log_merge import merge_logs
from exclave.control.registry_gc import EVERY, collect_all
from exclave.domain.jobs import Reason, is_silent_too_long
from exclave.domain.workflows import StepKind
from exclave.flow.events import Answered, Denied
from exclave.storage import audit, executions, registry_tokens, runners, workflows
from exclave.storage.database import AnyRow, Tx

log = Log("sweep")

SWEEP_S = 5.0
_GAP_S = 30.0
"""A longer pause between two sweeps means that we were down: nobody could have renewed."""
_BATCH = 200
_UNMOVED_S = 60.0
PEERS = "peers"
"""Nobody waits for it: the other servers hear that this one is there."""
_REPLIES_KEPT = timedelta(hours=24)


class Sweeper:
    """Gives up on silence, but only on silence that it has listened to itself."""

    def __init__(self, deps: Deps) -> None:
        self._deps = deps
        self._listening_since: datetime | None = None
        self._last: datetime | None = None
        self._collected: datetime | None = None

    async def run(self) -> None:
        """Sweep for ever; a failed sweep (a database that is away) starts the waiting anew."""
        while True:
            try:
                await self.sweep()
            except Exception as error:  # noqa: BLE001 - the edge of a background task
                log.error("sweep_failed", exc=error)
                self._last = None
            await self._deps.clock.sleep(min(SWEEP_S, self._deps.timings.lost_read_only_s / 4))

    async def sweep(self) -> None:
        """Do one round of repairs."""
        self._deps.hub.note_round()
        await self._deps.db.write(self._sweep_executions)
        await fire_due(self._deps)
        await self._deps.db.write(self._move_unmoved)
        await self._deps.db.write(_forget)
        await merge_logs(self._deps)
        await self._collect_garbage()

    async def _collect_garbage(self) -> None:
        """Look for garbage now and then; the first time some hours after the start."""
        now = self._deps.clock.now()
        if self._collected is None:
            self._collected = now
        elif now - self._collected >= EVERY:
            self._collected = now
            await collect_all(self._deps)

    def _sweep_executions(self, tx: Tx) -> None:
        deps, timings = self._deps, self._deps.timings
        tx.wake(PEERS)
        since = self._listen(tx.now)
        stale = executions.list_stale_offers(tx, tx.now - timedelta(seconds=timings.offer_s))
        withdraw_offers(tx, deps, stale)
        quiet = tx.now - timedelta(seconds=timings.lost_read_only_s)
        for row in executions.list_silent(tx, quiet):
            if is_silent_too_long(
                self._last_contact(row, since), tx.now, mutating=row.mutating, timings=timings
            ):
                end_interrupted(tx, deps, row, Reason.RUNNER_SILENT)

    def _listen(self, now: datetime) -> datetime:
        paused = self._last is None or now - self._last > timedelta(seconds=_GAP_S)
        if self._listening_since is None or paused:
            self._listening_since = now
        self._last = now
        return self._listening_since

    def _last_contact(self, row: AnyRow, since: datetime) -> datetime:
        """Count silence from our own start at the earliest; changes get a longer grace."""
        grace = self._deps.timings.start_grace_s if row.mutating else 0.0
        started: datetime = row.renewed_at
        if started >= since:
            return started
        return max(started, since + timedelta(seconds=grace))

    def _move_unmoved(self, tx: Tx) -> None:
        before = tx.now - timedelta(seconds=_UNMOVED_S)
        keys = workflows.list_unmoved(tx, before, _BATCH)
        if keys:
            advance(tx, self._deps, [Happening(org, workflow) for org, workflow in keys])
            workflows.note_looked(tx, keys)


async def fire_due(deps: Deps) -> datetime | None:
    """Ring the timers and close the gates whose time has come; tell when the next one is due."""

    def fire(tx: Tx) -> datetime | None:
        happenings = [
            Happening(row.org_id, row.workflow_id, _event_of(row))
            for row in workflows.list_due(tx, _BATCH)
        ]
        if happenings:
            advance(tx, deps, happenings)
        return workflows.next_due(tx)

    return await deps.db.write(fire)


async def run_timers(deps: Deps) -> None:
    """Sleep until the next timer is due, or until a new one is set."""
    with deps.hub.watch("timers") as watch:
        while True:
            try:
                due = await fire_due(deps)
            except Exception as error:  # noqa: BLE001 - the edge of a background task
                log.error("timers_failed", exc=error)
                due = None
            left = SWEEP_S if due is None else (due - deps.clock.now()).total_seconds()
            await watch.wait(max(0.01, min(left, SWEEP_S)))


def _event_of(row: AnyRow) -> Answered | Denied:
    if row.kind == StepKind.GATE:
        return Denied(row.position, row.digest, reason="expired")
    return Answered(row.position, row.attempt)


def _forget(tx: Tx) -> None:
    runners.drop_expired(tx)
    registry_tokens.drop_expired_registry_tokens(tx)
    audit.drop_old_replies(tx, _REPLIES_KEPT)
