"""Work that would hold up the event loop, done in a thread; tests of virtual time have none."""

from collections.abc import Callable
from typing import Protocol, TypeVar

T = TypeVar("T")


class RunApart(Protocol):
    """Runs what would hold up the event loop, like `asyncio.to_thread`."""

    async def __call__(self, work: Callable[[], T], /) -> T:
        """Return what the work returns."""
        ...
