"""Turns at the workers: who waits, who is next, and how many of whom run."""

import asyncio
from collections import Counter, deque
from dataclasses import dataclass, field

from exclave.base.errors import Unavailable
from exclave.control.runtime.request_slots import Busy


@dataclass(eq=False, slots=True)
class Turn:
    """A call in the queue: it waits, then holds a worker."""

    org: str
    long: bool
    given: asyncio.Future[None]
    holds: bool = False


@dataclass(slots=True)
class TurnQueue:
    """Waiting and running calls. Orgs take turns; short and long calls of an org wait apart."""

    size: int
    most_waiting: int
    lines: dict[tuple[str, bool], deque[Turn]] = field(default_factory=dict)
    running: Counter[str] = field(default_factory=Counter)
    long: set[str] = field(default_factory=set)
    """Orgs of which a long call runs: one of each at a time."""

    def enter(self, org: str, *, long: bool) -> Turn:
        """Put a call at the end of its org's line; raise `Busy` if that is full."""
        line = self.lines.setdefault((org, long), deque())
        if len(line) >= self.most_waiting:
            raise Busy(f"{len(line)} pieces of work of this org wait already", retry_after_s=5)
        turn = Turn(org, long, asyncio.get_running_loop().create_future())
        line.append(turn)
        self.give()
        return turn

    def leave(self, turn: Turn) -> None:
        """Remove a call from the queue, or release the worker that it holds."""
        if turn.holds:
            self.running[turn.org] -= 1
            self.running += Counter()  # forgets orgs that run nothing
            self.long -= {turn.org} if turn.long else set()
        else:
            self._shorten(turn)
        self.give()

    def give(self) -> None:
        """Assign free workers to the next calls."""
        while turn := self._choose():
            self._shorten(turn)
            turn.holds = True
            self.running[turn.org] += 1
            self.long |= {turn.org} if turn.long else set()
            if not turn.given.done():
                turn.given.set_result(None)

    def refuse_all(self) -> None:
        """Fail all waiting calls."""
        for line in self.lines.values():
            for turn in line:
                if not turn.given.done():
                    turn.given.set_exception(refuse_stopping())

    def _choose(self) -> Turn | None:
        if self.running.total() >= self.size:
            return None
        share = max(1, self.size - 1)
        for (org, long), line in self.lines.items():
            may_be_long = len(self.long) < share and org not in self.long
            if self.running[org] < share and (may_be_long or not long):
                return line[0]
        return None

    def _shorten(self, turn: Turn) -> None:
        """Remove a call from its line, and move the line behind the others."""
        line = self.lines.pop((turn.org, turn.long))
        line.remove(turn)
        if line:
            self.lines[turn.org, turn.long] = line


def refuse_stopping() -> Unavailable:
    """Return the error of calls that the stopping server does not run any more."""
    return Unavailable("the server stops")
