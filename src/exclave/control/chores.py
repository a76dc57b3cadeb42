"""Background chores: each is a task of its own, and no failure of a round or a row ends one.

What one tenant makes slow or breaks must not delay the others. So chores do not wait for each
other, and rows of different orgs do not share the fate of a transaction.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from exclave.base.logs import Log
from exclave.control.deps import Deps

log = Log("chores")
R = TypeVar("R")

PACE_S = 5.0
"""How often a chore looks that nothing wakes."""
_SHORTEST_S = 0.01
_TOGETHER = 32
"""Rows that are worked off at the same time: their transactions share a commit."""
_ROUND_S = 10.0
"""After this time a round starts no more rows: the next round goes on with them."""
_FIRST_PAUSE_S = 10.0
_LONGEST_PAUSE_S = 3600.0
_REMEMBERED = 10_000


@dataclass(frozen=True, slots=True)
class Chore:
    """A background task of this server that runs round after round."""

    name: str
    run_round: Callable[[], Awaitable[float]]
    """Does one round; answers how many seconds later the next one is due."""
    wakes: tuple[str, ...] = ()
    """Keys of the hub that end the wait for the next round."""
    first_s: float = 0.0
    """How long after the start the first round is due."""


async def run_chore(deps: Deps, chore: Chore) -> None:
    """Run a chore until the server stops."""
    with deps.hub.watch(*chore.wakes) as watch:
        rest = chore.first_s
        while not deps.hub.closed:
            if rest:
                await watch.wait(rest)
            rest = max(_SHORTEST_S, await _run_round(deps, chore))


async def _run_round(deps: Deps, chore: Chore) -> float:
    tally = deps.chores.of(chore.name)
    tally.runs += 1
    began = deps.clock.monotonic()
    try:
        rest = await chore.run_round()
    except Exception as error:  # noqa: BLE001 - the edge of a background task
        log.error("chore_failed", exc=error, chore=chore.name)
        tally.failures += 1
        rest = PACE_S
    else:
        tally.succeeded_at = deps.clock.now()
    tally.seconds += deps.clock.monotonic() - began
    return rest


class RowWorker:
    """Processes rows of all orgs, each in transactions of its own.

    A row that fails is logged, counted, and left alone for a while that grows with each failure.
    Failures are remembered in memory only: after a restart a row is tried again at once.
    """

    def __init__(self, deps: Deps, chore: str) -> None:
        self._deps = deps
        self._chore = chore
        self._tally = deps.chores.of(chore)
        self._pauses: dict[str, tuple[float, float]] = {}
        """By row: until when it is left alone, and for how long that was."""

    async def work_off(
        self, rows: Sequence[R], name: Callable[[R], str], work: Callable[[R], Awaitable[object]]
    ) -> list[R]:
        """Process the rows that are due; return those that failed."""
        failed: list[R] = []

        async def work_one(row: R) -> None:
            try:
                await work(row)
            except Exception as error:  # noqa: BLE001 - the edge of one row
                self._note_failure(name(row), error)
                failed.append(row)
            else:
                self._pauses.pop(name(row), None)

        now = self._deps.clock.monotonic()
        due = [row for row in rows if self._pauses.get(name(row), (now, 0.0))[0] <= now]
        for start in range(0, len(due), _TOGETHER):
            if self._deps.clock.monotonic() - now > _ROUND_S:
                break
            await asyncio.gather(*(work_one(row) for row in due[start : start + _TOGETHER]))
        return failed

    def _note_failure(self, name: str, error: Exception) -> None:
        _, last = self._pauses.pop(name, (0.0, _FIRST_PAUSE_S / 2))
        pause = min(2 * last, _LONGEST_PAUSE_S)
        if len(self._pauses) >= _REMEMBERED:
            del self._pauses[next(iter(self._pauses))]
        self._pauses[name] = (self._deps.clock.monotonic() + pause, pause)
        self._tally.rows_failed += 1
        log.error("chore_row_failed", exc=error, chore=self._chore, row=name, pause_s=pause)


def count_rest(deps: Deps, due: datetime | None, *, least_s: float = 0.0) -> float:
    """Return the seconds to the next due row, bounded as other servers may add earlier ones."""
    left = PACE_S if due is None else (due - deps.clock.now()).total_seconds()
    return max(least_s, min(left, PACE_S))
