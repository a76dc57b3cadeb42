"""Event streams with reconnects: wait out an outage, detect that streams do not get through."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Collection
from typing import TypeVar

import httpx

from exclave.base.errors import Problem
from exclave.base.ids import jitter
from exclave.client.control_http import ControlHttp, is_outage
from exclave.client.problems import RemoteProblem, UnexpectedReply, Unreachable
from exclave.client.sse import ServerEvent, read_events

Value = TypeVar("Value")
OnOutage = Callable[[Problem], None]
"""Called once per outage with the problem that started it."""

MAX_OUTAGE_S = 600.0
_PAUSE_S = 0.2
_REFUSES_STREAMS = frozenset({405, 406, 501})


class Reconnect:
    """Retries during an outage: never before the first reply, for ten minutes after it."""

    def __init__(self, http: ControlHttp, on_outage: OnOutage | None = None) -> None:
        self._http = http
        self._on_outage = on_outage
        self._answered = False
        self._failing_since: float | None = None
        self._attempt = 0

    async def call(self, function: Callable[[], Awaitable[Value]]) -> Value:
        """Call a function until the server replies; return its result."""
        while True:
            try:
                value = await function()
            except Problem as problem:
                await self.on_failure(problem)
            else:
                self.on_success()
                return value

    def on_success(self) -> None:
        """Record that the server replied, which ends an outage."""
        self._answered = True
        self._failing_since = None
        self._attempt = 0

    async def on_failure(self, problem: Problem) -> None:
        """Sleep before the next attempt; raise if this is no outage, or one that lasts too long."""
        now = self._http.clock.monotonic()
        if self._failing_since is None:
            self._failing_since = now
            if self._on_outage and self._answered and is_outage(problem):
                self._on_outage(problem)
        is_too_long = now - self._failing_since >= MAX_OUTAGE_S
        if is_too_long or not self._answered or not is_outage(problem):
            raise problem
        self._attempt += 1
        await self._back_off()

    async def pause(self) -> None:
        """Sleep briefly between two streams."""
        await self._http.clock.sleep(_PAUSE_S)

    async def _back_off(self) -> None:
        randomness = self._http.ids.randomness
        await self._http.clock.sleep(jitter(randomness, self._attempt, first=0.3, longest=5.0))


class EventStream:
    """Reads event streams; `blocked` becomes true when only polling can work, as behind a proxy."""

    def __init__(self, http: ControlHttp, reconnect: Reconnect) -> None:
        self._http = http
        self._reconnect = reconnect
        self._empty_streams = 0
        self.blocked = False

    async def read(
        self, path: str, names: Collection[str], last_event_id: str = ""
    ) -> AsyncGenerator[ServerEvent]:
        """Yield events of these names until the stream ends or breaks; then call it again."""
        received = False
        try:
            async with self._http.stream(path, last_event_id) as response:
                kind = response.headers.get("Content-Type", "")
                self.blocked = not kind.startswith("text/event-stream")
                self._reconnect.on_success()
                async for event in self._parse(response):
                    received = True
                    if event.name in names:
                        yield event
        except Problem as problem:
            await self._handle_problem(problem, received=received)
        self._empty_streams = 0 if received else self._empty_streams + 1
        self.blocked = self.blocked or self._empty_streams > 1

    async def _parse(self, response: httpx.Response) -> AsyncIterator[ServerEvent]:
        if not self.blocked:
            async for event in read_events(response.aiter_bytes()):
                yield event

    async def _handle_problem(self, problem: Problem, *, received: bool) -> None:
        match problem:
            case Unreachable() if isinstance(problem.__cause__, httpx.ReadTimeout):
                self.blocked = not received
            case Unreachable() if received:
                pass
            case RemoteProblem() if problem.status in _REFUSES_STREAMS:
                self.blocked = True
            case UnexpectedReply() if not is_outage(problem):
                self.blocked = True
            case _:
                await self._reconnect.on_failure(problem)
                self._empty_streams = 0
