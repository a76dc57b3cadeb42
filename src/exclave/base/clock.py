"""The only place that reads a clock: everything else is handed one."""

import asyncio
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Wall time for records, monotonic time for durations, and sleeping on the same time line."""

    def now(self) -> datetime:
        """Tell the wall time, aware, in UTC."""
        ...

    def monotonic(self) -> float:
        """Tell seconds that never go back."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait on this time line."""
        ...


class SystemClock:
    """The clock of this machine."""

    def now(self) -> datetime:
        """Tell the wall time, aware, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Tell seconds that never go back."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait for real seconds."""
        await asyncio.sleep(seconds)
