"""An event loop whose time jumps to the next timer instead of waiting for it."""

import asyncio
import selectors
from collections.abc import Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

T = TypeVar("T")

START = datetime(2026, 1, 1, tzinfo=UTC)
_LEAST_STEP = 1e-6


class Deadlock(RuntimeError):  # noqa: N818 - says what happened
    """Nothing is ready and no timer is set: all tasks wait for each other."""


class _JumpingSelector(selectors.SelectSelector):
    loop: "VirtualTimeLoop"

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready:
            return ready
        if timeout is None:
            raise Deadlock("nothing will ever happen again")
        if timeout > 0:
            self.loop.virtual_now += max(timeout, _LEAST_STEP)
        return []


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An event loop that runs a program in the same order each time and skips sleeps."""

    def __init__(self) -> None:
        self.virtual_now = 0.0
        selector = _JumpingSelector()
        selector.loop = self
        super().__init__(selector)

    def time(self) -> float:
        return self.virtual_now


class VirtualClock:
    """The clock of the running loop. `skew` shifts its wall time; durations stay true."""

    def __init__(self, *, skew: timedelta = timedelta(0), start: datetime = START) -> None:
        self.skew = skew
        self._start = start

    def now(self) -> datetime:
        return self._start + self.skew + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def run_virtual(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on a new virtual-time loop and return its result."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(main)
