"""Turns of orgs at log work: merging goes round robin, and an org runs one search at a time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from exclave.control.runtime.request_slots import Busy, step_aside

MOST_SEARCHES = 8
"""Searches of one org that may run or wait."""


@dataclass(slots=True)
class _Line:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    length: int = 0


@dataclass(slots=True)
class LogTurns:
    """What this server remembers between two rounds of merging, and which orgs search now."""

    merged_last: str = ""
    """The org whose log was merged last."""
    _searches: dict[str, _Line] = field(default_factory=dict)

    @asynccontextmanager
    async def search(self, org: str) -> AsyncIterator[None]:
        """Wait until no other search of the org runs; `Busy` if too many wait already."""
        line = self._searches.setdefault(org, _Line())
        if line.length >= MOST_SEARCHES:
            raise Busy(f"{line.length} searches of this org wait already", retry_after_s=5)
        line.length += 1
        try:
            async with step_aside():
                await line.lock.acquire()
            try:
                yield
            finally:
                line.lock.release()
        finally:
            line.length -= 1
            if not line.length:
                self._searches.pop(org, None)
