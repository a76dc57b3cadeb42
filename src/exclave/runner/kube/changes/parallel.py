"""The same call for many objects, a few at once; the first failure ends the others."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

T = TypeVar("T")
R = TypeVar("R")

AT_ONCE: Final = 4
"""Requests at once; measured: 16 are slower than 4."""


async def run_all(
    entries: Sequence[T], call: Callable[[T], Awaitable[R]], *, at_once: int = AT_ONCE
) -> list[R]:
    """Return the results of a call for all entries, in their order."""
    results: dict[int, R] = {}
    numbers = iter(range(len(entries)))

    async def work() -> None:
        for number in numbers:
            results[number] = await call(entries[number])

    workers = [asyncio.create_task(work()) for _ in range(min(at_once, len(entries)))]
    try:
        await asyncio.gather(*workers)
    finally:
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
    return [results[number] for number in range(len(entries))]
