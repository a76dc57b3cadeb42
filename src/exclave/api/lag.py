"""Measure how long the event loop is blocked, and by which requests."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from starlette.types import Scope

from exclave.base.logs import Log

log = Log("loop")

TICK_S = 0.1
HELD_S = 0.05
_NAMED = 5
_REMEMBERED = 64


@dataclass(slots=True)
class Underway:
    """A request that is in progress, or was a moment ago."""

    id: str
    scope: Scope
    began: float
    ended: float | None = None


class LoopMonitor:
    """Sleeps in short ticks; the delay of a tick is the time for which the loop was blocked."""

    def __init__(self, observe: Callable[[float], None]) -> None:
        self._observe = observe
        self._underway: dict[str, Underway] = {}
        self._over: deque[Underway] = deque(maxlen=_REMEMBERED)

    @contextmanager
    def note(self, request_id: str, scope: Scope, now: Callable[[], float]) -> Iterator[None]:
        """Record a request as in progress while the block lasts, and a moment longer."""
        request = self._underway[request_id] = Underway(request_id, scope, now())
        try:
            yield
        finally:
            request.ended = now()
            del self._underway[request_id]
            self._over.append(request)

    async def run(self, now: Callable[[], float]) -> None:
        """Measure until cancelled."""
        while True:
            began = now()
            await asyncio.sleep(TICK_S)
            lag = max(0.0, now() - began - TICK_S)
            self._observe(lag)
            if lag > HELD_S:
                log.warning("loop_held", ms=round(lag * 1000), requests=self._name(began))

    def _name(self, since: float) -> list[str]:
        """Return the names of requests in progress since then, the longest first."""
        blocking = [
            request
            for request in self._over
            if request.ended is not None and request.ended >= since
        ]
        blocking += self._underway.values()
        blocking.sort(
            key=lambda request: (
                request.ended is None,
                request.began - (request.ended or request.began),
            )
        )
        return [_describe(request) for request in blocking[:_NAMED]]


def _describe(request: Underway) -> str:
    path = getattr(request.scope.get("route"), "path", "")
    return f"{request.scope['method']} {path} {request.id}"
