"""Plain functions that wait on the event loop: written like blocking code, yet they block nobody.

`run` carries a function on a stack of its own (a greenlet). Where it has to wait, deep inside, the
loop goes on with other things and comes back to it. Outside of `run` the same calls just block: for
start-up, command-line tools and simulations.

While such a function runs, a part of the loop's own stack lies aside. The loop must not be touched
then: what is to be arranged with it is handed over, and arranged once its stack is back.
"""

import asyncio
import select
from collections.abc import Callable
from concurrent.futures import Executor
from contextvars import copy_context
from time import thread_time
from typing import Any, TypeVar, cast

from greenlet import getcurrent, greenlet

from exclave.base.loop_time import note_step

T = TypeVar("T")
Arrange = Callable[[], None]


class _Stack(greenlet):
    """The stack of a function that `run` carries."""

    loop: asyncio.AbstractEventLoop
    busy_s = 0.0
    """For how long it has run, without the time in which it waited."""
    resumed_at = 0.0

    def go_on(self) -> None:
        """Run until it waits or ends, then do what it wants arranged; on the loop's stack only."""
        self.resumed_at = thread_time()
        arrange: Arrange = self.switch()
        self.busy_s += thread_time() - self.resumed_at
        arrange()

    def leave(self, arrange: Arrange) -> None:
        """Let the loop go on until somebody calls `go_on`."""
        parent: Any = self.parent
        parent.switch(arrange)


async def run(work: Callable[[], T]) -> T:
    """Run a function that may wait. A cancelled caller does not end it."""
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[T] = loop.create_future()
    stack = _Stack(lambda: _settle(outcome, work))
    stack.loop = loop
    stack.gr_context = copy_context()
    stack.go_on()
    first_s = stack.busy_s  # this part is a step of the caller's own
    try:
        return await outcome
    finally:
        note_step(stack.busy_s - first_s)


def can_wait() -> bool:
    """Tell whether the caller runs inside of `run`."""
    return isinstance(getcurrent(), _Stack)


def read_busy_time() -> float:
    """Return a clock, in seconds, that stands still while the caller waits."""
    stack = getcurrent()
    if not isinstance(stack, _Stack):
        return thread_time()
    return stack.busy_s + thread_time() - stack.resumed_at


def call_beside(executor: Executor | None, work: Callable[[], T]) -> T:
    """Let a thread do what would block the loop; None is any thread of the loop's own."""
    if not can_wait():
        return work()
    stack = cast("_Stack", getcurrent())
    started: list[asyncio.Future[T]] = []

    def start() -> None:
        started.append(stack.loop.run_in_executor(executor, work))
        started[0].add_done_callback(lambda _: stack.go_on())

    stack.leave(start)
    return started[0].result()


def wait_for_socket(descriptor: int, *, write: bool) -> None:
    """Wait until a socket has something to read, or, with `write`, until it takes more."""
    if not can_wait():
        select.select([descriptor], [descriptor] if write else [], [])
        return
    stack = cast("_Stack", getcurrent())
    loop = stack.loop

    def watch() -> None:
        loop.add_reader(descriptor, come_back)
        if write:
            loop.add_writer(descriptor, come_back)

    def come_back() -> None:
        loop.remove_reader(descriptor)
        if write:
            loop.remove_writer(descriptor)
        stack.go_on()

    stack.leave(watch)


def _settle(outcome: "asyncio.Future[T]", work: Callable[[], T]) -> Arrange:
    try:
        result = work()
    except BaseException as error:  # noqa: BLE001 - it is the caller's
        failure = error
        return lambda: None if outcome.done() else outcome.set_exception(failure)
    return lambda: None if outcome.done() else outcome.set_result(result)
