"""Event streams that survive cuts: wait out an outage, notice when streams never get through."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Collection
from typing import TypeVar

import httpx

from exclave.base.errors import Problem
from exclave.base.ids import jitter
from exclave.client.control_http import ControlCalls, is_outage
from exclave.client.problems import RemoteProblem, UnexpectedReply, Unreachable
from exclave.client.sse import ServerEvent, read_events

Value = TypeVar("Value")
Trouble = Callable[[Problem], None]

LONGEST_OUTAGE_S = 600.0
_BREATH_S = 0.2
_REFUSES_STREAMS = frozenset({405, 406, 501})


class Patience:
    """Waits while the server is away: not at all before its first answer, ten minutes after it."""

    def __init__(self, calls: ControlCalls, on_trouble: Trouble | None = None) -> None:
        self._calls = calls
        self._on_trouble = on_trouble
        self._answered = False
        self._failing_since: float | None = None
        self._attempt = 0

    async def insist(self, call: Callable[[], Awaitable[Value]]) -> Value:
        """Repeat a call until the server is back."""
        while True:
            try:
                value = await call()
            except Problem as problem:
                await self.bear(problem)
            else:
                self.calm()
                return value

    def calm(self) -> None:
        """Note that the server answered."""
        self._answered = True
        self._failing_since = None
        self._attempt = 0

    async def bear(self, problem: Problem) -> None:
        """Pause after a failure; raise it if it will not pass, or has lasted too long."""
        now = self._calls.clock.monotonic()
        if self._failing_since is None:
            self._failing_since = now
            if self._on_trouble and self._answered and is_outage(problem):
                self._on_trouble(problem)
        too_long = now - self._failing_since >= LONGEST_OUTAGE_S
        if too_long or not self._answered or not is_outage(problem):
            raise problem
        self._attempt += 1
        await self._pause()

    async def breathe(self) -> None:
        """Pause for a moment between two streams."""
        await self._calls.clock.sleep(_BREATH_S)

    async def _pause(self) -> None:
        randomness = self._calls.ids.randomness
        await self._calls.clock.sleep(jitter(randomness, self._attempt, first=0.3, longest=5.0))


class EventLink:
    """Listens to event streams; `blocked` turns true when only polling can work here."""

    def __init__(self, calls: ControlCalls, patience: Patience) -> None:
        self._calls = calls
        self._patience = patience
        self._empty = 0
        self.blocked = False

    async def listen(
        self, path: str, names: Collection[str], last_event_id: str = ""
    ) -> AsyncGenerator[ServerEvent]:
        """Yield events of these names until the stream ends or is cut; then listen again."""
        heard = False
        try:
            async with self._calls.stream(path, last_event_id) as response:
                kind = response.headers.get("Content-Type", "")
                self.blocked = not kind.startswith("text/event-stream")
                self._patience.calm()
                async for event in self._read(response):
                    heard = True
                    if event.name in names:
                        yield event
        except Problem as problem:
            await self._judge(problem, heard=heard)
        self._empty = 0 if heard else self._empty + 1
        self.blocked = self.blocked or self._empty > 1

    async def _read(self, response: httpx.Response) -> AsyncIterator[ServerEvent]:
        if not self.blocked:
            async for event in read_events(response.aiter_bytes()):
                yield event

    async def _judge(self, problem: Problem, *, heard: bool) -> None:
        match problem:
            case Unreachable() if isinstance(problem.__cause__, httpx.ReadTimeout):
                self.blocked = not heard
            case Unreachable() if heard:
                pass
            case RemoteProblem() if problem.status in _REFUSES_STREAMS:
                self.blocked = True
            case UnexpectedReply() if not is_outage(problem):
                self.blocked = True
            case _:
                await self._patience.bear(problem)
                self._empty = 0
