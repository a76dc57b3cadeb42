"""Work for a client ends when the client hangs up, and not a moment after it is done."""

import asyncio

import pytest
from starlette.types import Message

from exclave.api.runner.polls import run_while_connected


class Client:
    """Hangs up when told to."""

    def __init__(self) -> None:
        self._gone = asyncio.Event()

    async def receive(self) -> Message:
        await self._gone.wait()
        return {"type": "http.disconnect"}

    def hang_up(self) -> None:
        self._gone.set()


async def wait_for_ever(ended: list[str]) -> str:
    try:
        await asyncio.sleep(3600)
    finally:
        ended.append("ended")
    return "never"


async def test_work_that_is_done_is_answered() -> None:
    assert await run_while_connected(Client().receive, asyncio.sleep(0, "done")) == "done"


async def test_who_hangs_up_ends_the_work() -> None:
    client, ended = Client(), list[str]()
    asyncio.get_running_loop().call_later(0.01, client.hang_up)

    assert await run_while_connected(client.receive, wait_for_ever(ended)) is None
    assert ended == ["ended"]
    await asyncio.sleep(0)  # nothing of the hang-up is left for what comes next


async def test_a_server_that_stops_is_not_taken_for_a_client_that_left() -> None:
    ended: list[str] = []
    serving = asyncio.create_task(run_while_connected(Client().receive, wait_for_ever(ended)))
    await asyncio.sleep(0.01)
    serving.cancel()

    with pytest.raises(asyncio.CancelledError):
        await serving
    assert ended == ["ended"]


async def test_both_at_once_stop_the_server() -> None:
    client, ended = Client(), list[str]()
    serving = asyncio.create_task(run_while_connected(client.receive, wait_for_ever(ended)))
    await asyncio.sleep(0.01)
    client.hang_up()
    serving.cancel()

    with pytest.raises(asyncio.CancelledError):
        await serving


async def test_who_hangs_up_as_the_work_is_done_disturbs_nothing_that_follows() -> None:
    client = Client()

    async def finish() -> str:
        await asyncio.sleep(0.01)
        client.hang_up()
        await asyncio.sleep(0)
        return "done"

    assert await run_while_connected(client.receive, finish()) == "done"
    await asyncio.sleep(0.01)


async def test_a_problem_of_the_work_is_raised() -> None:
    async def fail() -> None:
        raise LookupError("nothing there")

    with pytest.raises(LookupError):
        await run_while_connected(Client().receive, fail())
