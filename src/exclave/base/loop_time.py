"""Measures how long a coroutine blocks the event loop.

Each step of a coroutine, from one await to the next, blocks the loop. Short steps do no harm,
because others run in between; long ones are added up. CPU
time is counted: on a busy machine a step may take long without using much of it.

Work that cannot be short calls `give_way` between its parts, so that others run in between. It
still counts as one step.
"""

import asyncio
from collections.abc import Coroutine, Generator
from contextvars import ContextVar
from dataclasses import dataclass, field
from time import thread_time
from typing import Any, Generic, TypeVar

T = TypeVar("T")

LONG_S = 0.003
"""The duration above which a step counts as long."""


@dataclass(slots=True)
class LoopTime:
    """How long one coroutine blocked the loop."""

    task: "asyncio.Task[Any] | None" = field(default_factory=asyncio.current_task)
    long_s: float = 0.0
    """The total duration of long steps, in seconds."""
    is_long: bool = False
    """Whether long steps are expected."""
    gives_way: bool = False
    """Whether the current step ends only to let others run."""
    _unfinished_s: float = 0.0
    """The duration of the parts of the current step before it gave way."""

    def add(self, seconds: float) -> None:
        """Add the duration of a step."""
        if seconds > LONG_S:
            self.long_s += seconds

    def end_part(self, seconds: float) -> None:
        """Add the duration of a step, or remember it if more of that step follows."""
        self._unfinished_s += seconds
        if self.gives_way:
            self.gives_way = False
        else:
            self.add(self._unfinished_s)
            self._unfinished_s = 0.0


_current: ContextVar[LoopTime | None] = ContextVar("loop_time", default=None)


def note_step(seconds: float) -> None:
    """Add a step that another task ran on behalf of the current coroutine."""
    measured = _current.get()
    # A task that was started meanwhile has inherited the variable, but does other work.
    if measured is not None and measured.task is asyncio.current_task():
        measured.add(seconds)


async def give_way() -> None:
    """Let the loop run what waits for it, between two parts of a long computation."""
    measured = _current.get()
    if measured is not None and measured.task is asyncio.current_task():
        measured.gives_way = True
    await asyncio.sleep(0)


def is_expected_long() -> bool:
    """Return whether long steps are expected of the current coroutine."""
    measured = _current.get()
    return measured is not None and measured.is_long


class Measured(Generic[T]):
    """An awaitable that runs a coroutine and measures its steps."""

    def __init__(self, work: Coroutine[Any, Any, T], time: LoopTime) -> None:
        self._work = work
        self._time = time

    def __await__(self) -> Generator[Any, Any, T]:
        before = _current.set(self._time)
        value: Any = None
        error: BaseException | None = None
        try:
            while True:
                began = thread_time()
                try:
                    step = self._work.send(value) if error is None else self._work.throw(error)
                except StopIteration as end:
                    result: T = end.value
                    return result
                finally:
                    self._time.end_part(thread_time() - began)
                value = error = None
                try:
                    value = yield step
                except GeneratorExit:
                    self._work.close()
                    raise
                except BaseException as thrown:  # noqa: BLE001 - the coroutine gets it
                    error = thrown
        finally:
            _current.reset(before)
