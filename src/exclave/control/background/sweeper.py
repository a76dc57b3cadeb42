"""End executions whose runner was silent for too long, and withdraw offers never started."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import TypeVar

from exclave.base.errors import Problem
from exclave.base.logs import Log
from exclave.control import chores
from exclave.control.chores import RowWorker
from exclave.control.deps import Deps
from exclave.control.dispatch.completion import ResultDetails, end_interrupted, withdraw_offers
from exclave.domain.executions import Execution
from exclave.domain.jobs import Reason, Silence, find_silence
from exclave.storage import executions
from exclave.storage.engine.database import StatementFailed, Tx
from exclave.storage.executions import silent_since

log = Log("sweep")
T = TypeVar("T")
_ListFrom = Callable[[Tx, str], Sequence[Execution]]

LOST = "lost"
"""The name of the chore."""
_GAP_S = 30.0
"""A longer pause between two sweeps means that we were down: nobody could have renewed."""


class Sweeper:
    """Ends executions of silent runners, counting only silence while this server was listening."""

    def __init__(self, deps: Deps) -> None:
        self._deps = deps
        self._rows = RowWorker(deps, LOST)
        self._listening_since: datetime | None = None
        self._last: datetime | None = None

    async def sweep(self) -> float:
        """Run one round; return when the next one is due.

        Each execution ends in a transaction of its own, whose statement checks again that it is
        what was listed. So one that cannot be ended keeps nobody else waiting.
        """
        timings = self._deps.timings
        now = await self._read(lambda tx: tx.now)
        since = self._listen(now)
        stale = now - timedelta(seconds=timings.offer_s)
        await self._work_pages(
            lambda tx, after: executions.list_stale_offers(tx, stale, after), self._withdraw
        )
        for mutating in (False, True):
            silence = find_silence(now, since, mutating=mutating, timings=timings)
            list_silent = partial(_list_silent, silence=silence, mutating=mutating)
            await self._work_pages(list_silent, partial(self._give_up, silence))
        # However long this took, runners could renew meanwhile: that is no gap.
        self._last = await self._read(lambda tx: tx.now)
        return min(chores.PACE_S, timings.lost_read_only_s / 4)

    async def _read(self, query: Callable[[Tx], T]) -> T:
        try:
            return await self._deps.db.read(query)
        except Exception:
            self._last = None  # the database is away, so that runners could not renew either
            raise

    def _listen(self, now: datetime) -> datetime:
        """Return since when this server listens; only pauses of this chore interrupt that."""
        paused = self._last is None or now - self._last > timedelta(seconds=_GAP_S)
        if self._listening_since is None or paused:
            self._listening_since = now
        self._last = now
        return self._listening_since

    async def _work_pages(
        self,
        list_from: _ListFrom,
        work: Callable[[Execution], Awaitable[object]],
    ) -> None:
        """Process all rows page by page, each page after the last id of the one before."""
        after = ""
        while rows := await self._read(lambda tx: list_from(tx, after)):  # noqa: B023 - awaited here
            await self._rows.work_off(rows, lambda execution: execution.id, work)
            if len(rows) < executions.PAGE:
                return
            after = rows[-1].id

    async def _withdraw(self, offer: Execution) -> None:
        deps = self._deps
        await deps.db.write(lambda tx: withdraw_offers(tx, deps, [offer]), key=offer.queue_id)

    async def _give_up(self, silence: Silence, execution: Execution) -> None:
        def end(tx: Tx, details: ResultDetails | None = None) -> bool:
            gone = silent_since(silence.until)
            return end_interrupted(tx, self._deps, execution, Reason.RUNNER_SILENT, gone, details)

        try:
            await self._deps.db.write(end, key=execution.queue_id)
        except (Problem, StatementFailed):
            raise
        except Exception as error:  # noqa: BLE001 - lanes must not stay taken because of it
            log.error(
                "ending_broken", exc=error, org_id=execution.org_id, execution_id=execution.id
            )
            await self._deps.db.write(
                lambda tx: end(tx, ResultDetails(bare=True)), key=execution.queue_id
            )


def _list_silent(tx: Tx, after: str, *, silence: Silence, mutating: bool) -> Sequence[Execution]:
    return executions.list_silent(tx, silence, mutating=mutating, after=after)
