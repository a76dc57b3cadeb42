"""Plain functions wait on the loop: others go on meanwhile, and nothing is mixed up."""

import asyncio
import socket
import threading
from contextvars import ContextVar

import pytest

from exclave.storage.engine.greenlets import call_beside, can_wait, run, wait_for_socket

name: ContextVar[str] = ContextVar("name", default="nobody")


async def test_a_function_that_waits_for_a_socket_lets_others_go_on() -> None:
    near, far = socket.socketpair()
    seen: list[str] = []

    def read() -> bytes:
        wait_for_socket(near.fileno(), write=False)
        seen.append("read")
        return near.recv(10)

    reading = asyncio.create_task(run(read))
    await asyncio.sleep(0.01)
    seen.append("others")
    far.send(b"news")

    assert await reading == b"news"
    assert seen == ["others", "read"]
    near.close()
    far.close()


async def test_what_blocks_runs_in_a_thread_and_answers_or_raises_here() -> None:
    def fail() -> None:
        raise LookupError("not here")

    def work() -> tuple[int, str]:
        elsewhere = call_beside(None, threading.get_ident)
        with pytest.raises(LookupError, match="not here"):
            call_beside(None, fail)
        return elsewhere, name.get()

    name.set("caller")
    elsewhere, seen = await run(work)

    assert elsewhere != threading.get_ident()
    assert seen == "caller"


async def test_a_cancelled_caller_does_not_end_the_function() -> None:
    gate, ended = threading.Event(), asyncio.Event()

    def work() -> None:
        call_beside(None, lambda: gate.wait(5))
        ended.set()

    task = asyncio.create_task(run(work))
    await asyncio.sleep(0.01)
    task.cancel()
    gate.set()

    await asyncio.wait_for(ended.wait(), 5)
    assert task.cancelled()


def test_outside_of_a_run_the_same_calls_block() -> None:
    near, far = socket.socketpair()
    far.send(b"x")

    wait_for_socket(near.fileno(), write=True)

    assert not can_wait()
    assert call_beside(None, lambda: 7) == 7
    near.close()
    far.close()
