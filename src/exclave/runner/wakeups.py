"""Wake-ups between the runner's loops, and waits that they can interrupt."""

import asyncio
from collections.abc import Awaitable

from exclave.base.clock import Clock


class Broadcast:
    """Wakes all current waiters; it is not remembered for later ones."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def fire(self) -> None:
        """Wake all current waiters."""
        event, self._event = self._event, asyncio.Event()
        event.set()

    async def wait(self) -> None:
        """Wait for the next time it fires."""
        await self._event.wait()


class Signals:
    """Signals between the parts of the runner."""

    def __init__(self) -> None:
        self.stopping = asyncio.Event()
        """Set when the runner accepts no more jobs."""
        self.renew_soon = asyncio.Event()
        """Set when there is news for the next renewal."""
        self.changed = Broadcast()
        """Fired when an execution ended or was removed from the roster."""
        self.back = Broadcast()
        """Fired when the control plane responds again after an outage."""
        self.report_wanted = False
        """Set when the control plane requested a report of the Stack."""
        self.contact_at: float | None = None
        """When a renewal last succeeded, on the monotonic clock; None during an outage."""

    def note_contact(self, at: float) -> None:
        """Record that the control plane answered."""
        was_silent, self.contact_at = self.contact_at is None, at
        if was_silent:
            self.back.fire()

    def note_silence(self) -> None:
        """Record that the control plane does not answer."""
        self.contact_at = None


async def wait_first(clock: Clock, seconds: float | None, *waits: Awaitable[object]) -> None:
    """Wait until one of `waits` is done, or for that many seconds; cancel the others."""
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    if seconds is not None:
        tasks.append(asyncio.ensure_future(clock.sleep(max(0.0, seconds))))
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
