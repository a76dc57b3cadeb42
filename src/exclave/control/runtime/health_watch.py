"""What a server last found out about its health."""

import asyncio
from dataclasses import dataclass, field

from exclave.base.errors import Problem


@dataclass(slots=True)
class HealthWatch:
    """The last answer and its age; the lock lets one request at a time find out."""

    checked_at: float | None = None
    problem: Problem | None = None
    stopping: bool = False
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
