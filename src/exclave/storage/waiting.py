"""Plain functions that wait on the event loop: written like blocking code, yet they block nobody.

`run` carries a function on a stack of its own (a greenlet). Where it has to wait, deep inside, the
loop goes on with other things and comes back to it. Outside of `run` the same calls just block: for
start-up, command-line tools and simulations.
"""

import asyncio
import select
from collections.abc import Callable
from concurrent.futures import Executor
from contextvars import copy_context
from typing import Any, TypeVar, cast

from greenlet import getcurrent, greenlet

T = TypeVar("T")


class _Stack(greenlet):
    """The stack of a function that `run` carries."""

    loop: asyncio.AbstractEventLoop


async def run(work: Callable[[], T]) -> T:
    """Run a function that may wait. A cancelled caller does not end it."""
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[T] = loop.create_future()

    def settle() -> None:
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001 - it is the caller's
            if not outcome.done():
                outcome.set_exception(error)
            return
        if not outcome.done():
            outcome.set_result(result)

    stack = _Stack(settle)
    stack.loop = loop
    stack.gr_context = copy_context()
    stack.switch()
    return await outcome


def can_wait() -> bool:
    """Tell whether the caller runs inside of `run`."""
    return isinstance(getcurrent(), _Stack)


def call_beside(executor: Executor | None, work: Callable[[], T]) -> T:
    """Let a thread do what would block the loop; None is any thread of the loop's own."""
    if not can_wait():
        return work()
    stack = cast("_Stack", getcurrent())
    future = stack.loop.run_in_executor(executor, work)
    future.add_done_callback(lambda _: stack.switch())
    _leave(stack)
    return future.result()


def wait_for_socket(descriptor: int, *, write: bool) -> None:
    """Wait until a socket has something to read, or, with `write`, until it takes more."""
    if not can_wait():
        select.select([descriptor], [descriptor] if write else [], [])
        return
    stack = cast("_Stack", getcurrent())
    loop = stack.loop

    def come_back() -> None:
        loop.remove_reader(descriptor)
        if write:
            loop.remove_writer(descriptor)
        stack.switch()

    loop.add_reader(descriptor, come_back)
    if write:
        loop.add_writer(descriptor, come_back)
    _leave(stack)


def _leave(stack: _Stack) -> None:
    parent: Any = stack.parent
    parent.switch()
