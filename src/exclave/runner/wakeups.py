"""How the runner's loops wake each other, and waiting that a wake-up may cut short."""

import asyncio
from collections.abc import Awaitable

from exclave.base.clock import Clock


class Broadcast:
    """Wakes everybody who waits at that moment; nothing is remembered for later."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def fire(self) -> None:
        """Wake all who wait now."""
        event, self._event = self._event, asyncio.Event()
        event.set()

    async def wait(self) -> None:
        """Wait for the next time it fires."""
        await self._event.wait()


class Signals:
    """What one part of the runner tells the others."""

    def __init__(self) -> None:
        self.stopping = asyncio.Event()
        """The runner takes no more work."""
        self.renew_soon = asyncio.Event()
        """There is news for the next renewal."""
        self.changed = Broadcast()
        """An execution ended, or the runner answers for it no more."""
        self.back = Broadcast()
        """The control plane answers again after a silence."""
        self.report_wanted = False
        """The control plane asked for a report of the Stack since the last one."""
        self.contact_at: float | None = None
        """When a renewal last got through, on the monotonic clock; None while none does."""

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
