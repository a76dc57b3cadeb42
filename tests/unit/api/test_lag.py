"""A loop that is held up is noticed, with the requests that may have done it."""

import asyncio
import time

from exclave.api.lag import HELD_S, TICK_S, LoopMonitor


async def test_a_request_that_holds_the_loop_is_named() -> None:
    lags: list[float] = []
    monitor = LoopMonitor(lags.append)
    ticking = asyncio.create_task(monitor.run(time.monotonic))
    await asyncio.sleep(0)

    with monitor.note("req_1", {"method": "POST"}, time.monotonic):
        time.sleep(TICK_S + 3 * HELD_S)  # noqa: ASYNC251 - that is the point
    while not lags:  # noqa: ASYNC110 - the monitor ticks by itself
        await asyncio.sleep(0.01)

    ticking.cancel()
    await asyncio.gather(ticking, return_exceptions=True)
    assert max(lags) > HELD_S
    assert monitor._name(0.0) == ["POST  req_1"]


async def test_requests_that_ended_before_are_not_named() -> None:
    monitor = LoopMonitor(lambda _: None)
    with monitor.note("req_1", {"method": "GET"}, lambda: 1.0):
        pass

    assert monitor._name(2.0) == []
