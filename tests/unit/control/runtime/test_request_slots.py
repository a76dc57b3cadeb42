"""Requests of one org wait for each other, those of others do not."""

import asyncio

import pytest

from exclave.control.runtime.request_slots import SHARED, Busy, RequestSlots, step_aside


class Visitors:
    """Requests that stay until they are let go."""

    def __init__(self, most: int, shared: int = SHARED) -> None:
        self.turns = RequestSlots(most, shared)
        self.inside: list[str] = []
        self.leave = asyncio.Event()

    async def visit(self, org: str, name: str) -> None:
        async with self.turns.hold(org):
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


async def test_an_org_has_fewer_places_while_others_are_active(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    visitors = Visitors(4, shared=1)
    crowd = await visitors.send("a", "a1", "a2")
    guest = await visitors.send("b", "b1")

    late = await visitors.send("a", "a3")
    assert visitors.inside == ["a1", "a2", "b1"]

    monkeypatch.setattr("exclave.control.runtime.request_slots.ACTIVE_S", -1.0)
    last = await visitors.send("a", "a4")

    assert set(visitors.inside) == {"a1", "a2", "b1", "a3", "a4"}
    visitors.leave.set()
    await asyncio.gather(*crowd, *guest, *late, *last)
    assert visitors.turns._lines == {}


async def test_kinds_of_requests_have_places_of_their_own() -> None:
    visitors = Visitors(1)
    tasks = await visitors.send("a", "a1", "a2")

    async with visitors.turns.hold("a", "vital"):
        assert visitors.inside == ["a1"]

    visitors.leave.set()
    await asyncio.gather(*tasks)


async def test_a_request_that_waits_for_something_else_gives_its_place_to_the_next() -> None:
    turns, inside = RequestSlots(1), asyncio.Event()

    async def wait_elsewhere() -> str:
        async with turns.hold("a"):
            async with step_aside():
                await asyncio.wait_for(inside.wait(), 10)
            return "back"

    async def work() -> None:
        async with turns.hold("a"):
            inside.set()

    first = asyncio.create_task(wait_elsewhere())
    await asyncio.sleep(0)
    await work()

    assert await first == "back"
    assert turns._lines == {}


async def test_a_request_that_is_cancelled_aside_leaves_nothing_behind() -> None:
    turns = RequestSlots(1)

    async def wait_elsewhere() -> None:
        async with turns.hold("a"), step_aside():
            await asyncio.Event().wait()

    task = asyncio.create_task(wait_elsewhere())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    assert turns._lines == {}


async def test_a_task_that_outlives_its_request_has_no_place_to_give_up() -> None:
    turns, over = RequestSlots(1), asyncio.Event()

    async def go_on() -> None:
        await over.wait()
        async with step_aside():
            await asyncio.sleep(0)

    async with turns.hold("a"):
        task = asyncio.create_task(go_on())
    over.set()
    await task

    assert turns._lines == {}
    async with asyncio.timeout(10), turns.hold("a"):
        pass


async def test_a_request_comes_back_even_if_all_places_wait_for_it() -> None:
    turns, lock = RequestSlots(1), asyncio.Lock()

    async def work(*, aside: bool) -> None:
        async with turns.hold("a"), lock:
            if aside:
                async with step_aside():
                    await asyncio.sleep(0.01)

    async with asyncio.timeout(10):
        await asyncio.gather(work(aside=True), work(aside=False), work(aside=False))

    assert turns._lines == {}
