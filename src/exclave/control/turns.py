"""How many requests of one org are worked on at once: a flood of one keeps nobody else waiting."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from exclave.control.workers import Busy

_WAITING_PER_PLACE = 32
"""Requests that may wait for each that is worked on; more are refused."""


@dataclass(slots=True)
class _Line:
    """The requests of one org: how many are worked on, and who comes next."""

    running: int = 0
    waiting: deque[asyncio.Future[None]] = field(default_factory=deque)


class Turns:
    """Counts per org. Whoever finds all places taken waits in line."""

    def __init__(self, most: int = 0) -> None:
        """Let so many be worked on at once; 0 is no limit."""
        self.most = most
        self._lines: dict[str, _Line] = {}

    @asynccontextmanager
    async def take(self, org: str) -> AsyncIterator[None]:
        """Hold a place while the block lasts."""
        if not self.most:
            yield
            return
        line = self._lines.setdefault(org, _Line())
        await self._enter(line)
        try:
            yield
        finally:
            self._leave(org, line)

    async def _enter(self, line: _Line) -> None:
        if line.running < self.most:
            line.running += 1
            return
        if len(line.waiting) >= self.most * _WAITING_PER_PLACE:
            raise Busy(f"{len(line.waiting)} requests of this org wait already", retry_after_s=1)
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        line.waiting.append(place)
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self._pass_on(line)  # it was given to us in the moment in which we gave up
            else:
                line.waiting.remove(place)
            raise

    def _leave(self, org: str, line: _Line) -> None:
        self._pass_on(line)
        if not line.running:
            self._lines.pop(org, None)

    def _pass_on(self, line: _Line) -> None:
        while line.waiting:
            place = line.waiting.popleft()
            if not place.done():
                place.set_result(None)
                return
        line.running -= 1
