"""Requests of one org wait for each other, those of others do not."""

import asyncio

import pytest

from exclave.control.turns import Turns
from exclave.control.workers import Busy


class Visitors:
    """Requests that stay until they are let go."""

    def __init__(self, most: int) -> None:
        self.turns = Turns(most)
        self.inside: list[str] = []
        self.leave = asyncio.Event()

    async def visit(self, org: str, name: str) -> None:
        async with self.turns.take(org):
            self.inside.append(name)
            await self.leave.wait()

    async def send(self, org: str, *names: str) -> list[asyncio.Task[None]]:
        tasks = [asyncio.create_task(self.visit(org, name)) for name in names]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return tasks


async def test_an_org_has_so_many_places_and_others_have_their_own() -> None:
    visitors = Visitors(2)

    tasks = await visitors.send("a", "a1", "a2", "a3", "a4")
    tasks += await visitors.send("b", "b1")

    assert visitors.inside == ["a1", "a2", "b1"]
    visitors.leave.set()
    await asyncio.gather(*tasks)
    assert visitors.inside == ["a1", "a2", "b1", "a3", "a4"]
    assert visitors.turns._lines == {}


async def test_who_gives_up_waiting_gives_the_place_on() -> None:
    visitors = Visitors(1)
    first, second, third = await visitors.send("a", "a1", "a2", "a3")

    second.cancel()
    await asyncio.gather(second, return_exceptions=True)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    await asyncio.sleep(0)

    assert visitors.inside == ["a1", "a3"]
    third.cancel()
    await asyncio.gather(third, return_exceptions=True)
    assert visitors.turns._lines == {}


async def test_a_place_that_is_given_to_somebody_who_leaves_is_not_lost() -> None:
    visitors = Visitors(1)
    first, second, third = await visitors.send("a", "a1", "a2", "a3")

    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    second.cancel()  # the place is its own by now, and it does not know yet
    await asyncio.gather(second, return_exceptions=True)
    visitors.leave.set()
    await third

    assert visitors.inside[-1] == "a3"
    assert visitors.turns._lines == {}


async def test_the_line_has_an_end() -> None:
    visitors = Visitors(1)
    tasks = await visitors.send("a", *(f"a{number}" for number in range(33)))

    with pytest.raises(Busy):
        await visitors.visit("a", "one too many")

    visitors.leave.set()
    await asyncio.gather(*tasks)


async def test_without_a_number_nobody_waits() -> None:
    visitors = Visitors(0)

    tasks = await visitors.send("a", *(f"a{number}" for number in range(100)))

    assert len(visitors.inside) == 100
    visitors.leave.set()
    await asyncio.gather(*tasks)
