"""Run synchronous functions on the event loop with greenlets.

Why this exists: a transaction is a plain function, so that it cannot await anything else while it
holds locks and so that a simulation can run it inline. It still has to wait for PostgreSQL or for
the disk without blocking the event loop. `run` gives it a stack of its own (a greenlet); where it
waits, deep inside, the greenlet switches back to the loop and is resumed when the answer is there.
This is the design of SQLAlchemy's `greenlet_spawn` and `await_only`, without a coroutine per wait.

Without it, either every query and decision becomes `async`, or transactions run in threads. Threads
were the first version: after each statement they had to win the interpreter back from the loop.
Measured when they went: SQLite 168 -> 209 workflows/s; PostgreSQL at 15 jobs/s on a busy machine,
median dispatch 125 ms -> 13 to 18 ms
(docs/adr/0003-sqlite-and-postgresql-with-sync-transactions.md).

Two stacks, one thread:

    event loop      run() .......... other tasks .......... callback ........ run() returns
                     | switch   ^ switch                     | resume   ^ switch
    transaction      work() ... waits                        ... work() ends

- What may be touched when: between `resume` and the switch back, a part of the loop's stack is set
  aside (libuv keeps pointers into it), so code on the transaction's stack must not call the loop.
  It passes a callback to `suspend`, which calls the loop once the loop's own stack is back.
- Exceptions: one that `work` raises is set on the future that `run` awaits, and raised there. One
  in a thread or on a socket is raised at the call inside `work` that waited for it.
- Cancellation: cancelling the task that awaits `run` does not reach `work`, which runs to its end:
  a transaction is never left half done. Its outcome is dropped.

Outside of `run` the same calls block: for start-up, command-line tools and simulations.
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
    """The stack on which `run` executes a function."""

    loop: asyncio.AbstractEventLoop
    busy_s = 0.0
    """How long it has run, without the time in which it waited."""
    resumed_at = 0.0

    def resume(self) -> None:
        """Run until it waits or ends, then call what it passed; on the loop's stack only."""
        self.resumed_at = thread_time()
        arrange: Arrange = self.switch()
        self.busy_s += thread_time() - self.resumed_at
        arrange()

    def suspend(self, arrange: Arrange) -> None:
        """Switch to the loop, which calls `arrange`, until `resume` is called."""
        parent: Any = self.parent
        parent.switch(arrange)


async def run(work: Callable[[], T]) -> T:
    """Run a function that may wait; return its result. Cancelling the caller does not end it."""
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[T] = loop.create_future()
    stack = _Stack(lambda: _settle(outcome, work))
    stack.loop = loop
    stack.gr_context = copy_context()
    stack.resume()
    first_s = stack.busy_s  # until its first wait it ran within a step of the caller's task
    try:
        return await outcome
    finally:
        note_step(stack.busy_s - first_s)


def can_wait() -> bool:
    """Return whether the caller runs inside of `run`."""
    return isinstance(getcurrent(), _Stack)


def read_busy_time() -> float:
    """Return a clock, in seconds, that stands still while the caller waits."""
    stack = getcurrent()
    if not isinstance(stack, _Stack):
        return thread_time()
    return stack.busy_s + thread_time() - stack.resumed_at


def call_beside(executor: Executor | None, work: Callable[[], T]) -> T:
    """Run blocking work in a thread and return its result; None is the loop's own executor."""
    if not can_wait():
        return work()
    stack = cast("_Stack", getcurrent())
    started: list[asyncio.Future[T]] = []

    def start() -> None:
        started.append(stack.loop.run_in_executor(executor, work))
        started[0].add_done_callback(lambda _: stack.resume())

    stack.suspend(start)
    return started[0].result()


def wait_for_socket(descriptor: int, *, write: bool) -> None:
    """Wait until a socket is readable or, with `write`, writable."""
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
        # One event resumes once: a watcher that stays would resume a stack that waits elsewhere.
        loop.remove_reader(descriptor)
        if write:
            loop.remove_writer(descriptor)
        stack.resume()

    stack.suspend(watch)


def _settle(outcome: "asyncio.Future[T]", work: Callable[[], T]) -> Arrange:
    try:
        result = work()
    except BaseException as error:  # noqa: BLE001 - raised again where `run` is awaited
        failure = error
        return lambda: None if outcome.done() else outcome.set_exception(failure)
    return lambda: None if outcome.done() else outcome.set_result(result)
