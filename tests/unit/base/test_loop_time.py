"""Steps of a coroutine are measured one by one, whoever runs them."""

import asyncio
import time

import pytest

from exclave.base.loop_time import LONG_S, LoopTime, Measured, give_way, note_step


def hold_loop(seconds: float) -> None:
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


async def test_long_steps_are_added_up_and_waiting_is_not() -> None:
    async def work() -> str:
        hold_loop(0.01)
        await asyncio.sleep(0.05)
        hold_loop(0.01)
        return "done"

    measured, began = LoopTime(), time.perf_counter()

    assert await Measured(work(), measured) == "done"
    assert 0.02 <= measured.long_s <= time.perf_counter() - began - 0.05


async def test_others_run_where_a_step_gives_way_and_it_still_counts_as_a_whole() -> None:
    order: list[str] = []

    async def work() -> None:
        for part in ("first", "second"):
            order.append(part)
            hold_loop(0.7 * LONG_S)
            await give_way()

    async def do_other_work() -> None:
        order.append("other")

    measured = LoopTime()
    other = asyncio.create_task(do_other_work())
    await Measured(work(), measured)
    await other

    assert order == ["first", "other", "second"]
    assert measured.long_s >= 1.4 * LONG_S


async def test_a_task_that_gives_way_does_not_join_the_steps_of_the_task_that_started_it() -> None:
    async def work() -> None:
        other = asyncio.create_task(give_way())
        await asyncio.sleep(0)
        await other

    measured = LoopTime()
    await Measured(work(), measured)

    assert not measured.gives_way


async def test_a_step_that_is_run_by_somebody_else_counts() -> None:
    async def work() -> None:
        note_step(1.0)
        note_step(LONG_S / 2)

    measured = LoopTime()
    await Measured(work(), measured)

    assert measured.long_s == pytest.approx(1.0, abs=0.01)


async def test_a_task_that_is_started_meanwhile_does_not_count() -> None:
    async def work() -> None:
        await asyncio.create_task(start())

    async def start() -> None:
        note_step(1.0)

    measured = LoopTime()
    await Measured(work(), measured)

    assert measured.long_s < 1.0


async def test_failures_and_cancels_pass_through() -> None:
    async def fail() -> None:
        await asyncio.sleep(0)
        raise LookupError

    async def wait(ended: list[str]) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("ended")

    async def run(ended: list[str]) -> None:
        await Measured(wait(ended), LoopTime())

    with pytest.raises(LookupError):
        await Measured(fail(), LoopTime())
    ended: list[str] = []
    task = asyncio.create_task(run(ended))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == ["ended"]
