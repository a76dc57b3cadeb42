"""Stops work that fills the disk, before the runner itself has none left."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

from exclave.base.clock import Clock
from exclave.runner.jobs.workspace import check_room
from exclave.runner.outcomes import WorkFailed
from exclave.runner.wakeups import wait_first

T = TypeVar("T")
_PAUSE_S = 1.0


async def watch_disk(
    work: Coroutine[Any, Any, T], folder: Path, keep_free_bytes: int, clock: Clock
) -> T:
    """Await work; cancel it and raise `WorkFailed` once too little of the disk is left."""
    task = asyncio.ensure_future(work)
    try:
        while not task.done():
            await wait_first(clock, _PAUSE_S, asyncio.wait({task}))
            if not task.done():
                check_room(folder, keep_free_bytes)
        return task.result()
    except (WorkFailed, asyncio.CancelledError):
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        raise
