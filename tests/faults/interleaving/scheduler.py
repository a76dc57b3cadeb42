"""Lets transactions of several servers take turns, statement by statement, as a seed decides.

Before each statement and each commit a transaction stops and waits for its turn. One whose
statement waits for a lock of another is left alone until that one has ended.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from random import Random
from typing import Any, cast

import psycopg
from greenlet import getcurrent

from exclave.base.errors import Problem
from exclave.storage.engine.greenlets import can_wait

_CALM = 12
"""Rounds of the event loop without any news after which nobody is about to do something."""
_LOOK_S = 0.002
_LONGEST_S = 30.0
_BLOCKED = """
SELECT count(*) FROM pg_stat_activity WHERE pid = ANY(%s) AND wait_event_type = 'Lock'
"""
_actor: ContextVar[str] = ContextVar("actor", default="")


class Stuck(RuntimeError):  # noqa: N818 - says what happened
    """Nobody can go on, and no lock is the reason."""


@dataclass(frozen=True, slots=True)
class _Turn:
    """A transaction that waits for its turn."""

    actor: str
    sql: str
    resume: Callable[[], None]


class Scheduler:
    """Decides which transaction goes on; the same seed decides the same."""

    def __init__(self, database: "psycopg.Connection[tuple[Any, ...]]") -> None:
        self._database = database
        self._random = Random(0)
        self._stays = 0.0
        self._last = ""
        self.is_on = False
        """Whether transactions take turns now."""
        self._waiting: list[_Turn] = []
        self._backends: dict[int, int] = {}
        self._in_flight: dict[int, None] = {}
        self._blocked: set[int] = set()
        self._events = 0
        self._moved = asyncio.Event()
        self.trace: list[str] = []
        """Who did what, in order."""

    async def run(
        self, seed: int, actors: Mapping[str, Coroutine[Any, Any, Any]]
    ) -> dict[str, Any]:
        """Run all to their ends; return what each brought: a result, or its problem."""
        self._random = Random(seed)
        self._stays = self._random.choice((0.0, 0.5, 0.8))
        self._last = ""
        self.trace.clear()
        self.is_on = True
        try:
            tasks = {name: asyncio.create_task(_act(name, work)) for name, work in actors.items()}
            await self._take_turns(tasks)
        finally:
            self.is_on = False
        return {name: task.result() for name, task in tasks.items()}

    async def _take_turns(self, tasks: Mapping[str, "asyncio.Task[Any]"]) -> None:
        until = time.monotonic() + _LONGEST_S
        while True:
            await self._settle()
            if self._waiting:
                self._give_turn()
            elif all(task.done() for task in tasks.values()):
                return
            elif time.monotonic() > until:
                raise Stuck("\n".join(self.trace[-40:]))
            else:  # a lock that is about to be given back, or a deadlock about to be found
                self._blocked.clear()
                await asyncio.sleep(_LOOK_S)

    def _give_turn(self) -> None:
        self._waiting.sort(key=lambda turn: turn.actor)
        again = [turn for turn in self._waiting if turn.actor == self._last]
        stays = again and self._random.random() < self._stays
        turn = again[0] if stays else self._random.choice(self._waiting)
        self._waiting.remove(turn)
        self._last = turn.actor
        self.trace.append(f"{turn.actor}: {' '.join(turn.sql.split())[:110]}")
        turn.resume()

    async def _settle(self) -> None:
        """Wait until all wait: for a turn, for a lock, or for somebody who does."""
        while True:
            await self._calm_down()
            busy = [each for each in self._in_flight if each not in self._blocked]
            if not busy:
                return
            self._moved.clear()
            try:
                await asyncio.wait_for(self._moved.wait(), _LOOK_S)
            except TimeoutError:
                pids = [self._backends[each] for each in busy]
                row = self._database.execute(_BLOCKED, (pids,)).fetchone()
                if row == (len(pids),):
                    self._blocked.update(busy)

    async def _calm_down(self) -> None:
        quiet, seen = 0, self._events
        while quiet < _CALM:
            await asyncio.sleep(0)
            quiet, seen = (quiet + 1, seen) if self._events == seen else (0, self._events)

    def pause(self, sql: str) -> None:
        """Wait for a turn."""
        if not self.is_on or not can_wait():
            return
        stack = cast("Any", getcurrent())
        turn = _Turn(_actor.get(), sql, stack.resume)

        def wait() -> None:
            self._waiting.append(turn)
            self._note()

        stack.suspend(wait)

    def note_backend(self, connection: "psycopg.pq.abc.PGconn") -> None:
        """Remember which server process a socket leads to."""
        self._backends[connection.socket] = connection.backend_pid

    def note_end(self) -> None:
        """Look again who is blocked: a transaction ended, and its locks are free."""
        self._blocked.clear()

    @contextmanager
    def in_flight(self, descriptor: int) -> Iterator[None]:
        """Note that a statement is under way."""
        self._in_flight[descriptor] = None
        try:
            yield
        finally:
            del self._in_flight[descriptor]
            self._blocked.discard(descriptor)
            self._note()

    def _note(self) -> None:
        self._events += 1
        self._moved.set()


async def _act(name: str, work: Coroutine[Any, Any, Any]) -> Any:
    _actor.set(name)
    try:
        return await work
    except Problem as problem:
        return problem
