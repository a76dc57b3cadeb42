"""The workload of the workflow benches: a graph of 20 steps, each answered from outside."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

WIDTH = 4
LAYERS = 5
NAMES = tuple(f"s{layer}{place}" for layer in range(LAYERS) for place in range(WIDTH))
"""The steps, in an order in which needed ones come first."""

Answer = Callable[[str], Awaitable[object]]
"""Answers one step of one workflow; returns once the answer is on disk."""


def list_needs(name: str) -> list[str]:
    """Tell what a step needs: two steps of the layer above it."""
    layer, place = int(name[1]), int(name[2])
    if layer == 0:
        return []
    return [f"s{layer - 1}{place}", f"s{layer - 1}{(place + 1) % WIDTH}"]


async def answer_all(answer: Answer) -> None:
    """Answer every step as soon as what it needs was answered."""
    tasks: dict[str, asyncio.Task[object]] = {}

    async def answer_in_turn(name: str) -> object:
        for need in list_needs(name):
            await tasks[need]
        return await answer(name)

    for name in NAMES:
        tasks[name] = asyncio.create_task(answer_in_turn(name))
    await asyncio.gather(*tasks.values())


@dataclass(frozen=True, slots=True)
class Rate:
    """How fast workflows ended, and how much CPU time of this process each took."""

    per_second: float
    cpu_ms: float


async def run_many(one: Callable[[], Awaitable[None]], *, in_flight: int, seconds: float) -> Rate:
    """Keep that many workflows in flight for a while."""
    ended = 0
    begun, cpu = time.perf_counter(), time.process_time()

    async def keep_going() -> None:
        nonlocal ended
        while time.perf_counter() - begun < seconds:
            await one()
            ended += 1

    await asyncio.gather(*(keep_going() for _ in range(in_flight)))
    took, cpu = time.perf_counter() - begun, time.process_time() - cpu
    return Rate(ended / took, cpu / ended * 1000)
