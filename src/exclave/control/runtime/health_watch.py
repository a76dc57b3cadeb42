"""The result of a server's last health check."""

import asyncio
from dataclasses import dataclass, field

from exclave.base.errors import Problem


@dataclass(slots=True)
class HealthWatch:
    """The last result and its age; the lock lets only one request at a time check again."""

    checked_at: float | None = None
    problem: Problem | None = None
    stopping: bool = False
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
