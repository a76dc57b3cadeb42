"""Wake-ups inside one process: a waiter learns that something about a key has changed.

Why this exists: long polls, event streams and background loops would otherwise ask the database
again and again. A commit names the keys that it changed (`Tx.wake`), and the hub wakes the watches
on them; NOTIFY carries the keys to the hubs of other servers.

It is only an optimisation. A wake-up carries no data, may be lost or come twice, and every waiter
looks at the database itself: at once after registering, and again after a timeout.
"""

import asyncio
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Self

MESSAGE = ">"
"""The prefix of a message to other servers; anything without it is a key to wake."""
_ALONE = 4
"""After this many rounds without a sign of another server, a server is alone."""


class Watch:
    """Waits for changes of some keys.

    Enter it before the first look at the database: a change between that look and `wait` is then
    remembered, and `wait` returns at once.
    """

    def __init__(self, hub: "Hub", keys: tuple[str, ...]) -> None:
        self._hub = hub
        self._keys = keys
        self._changed: list[str] = []
        self.heard: list[str] = []
        """The keys that ended the last wait."""
        self._waiter: asyncio.Future[None] | None = None

    def __enter__(self) -> Self:
        for key in self._keys:
            self._hub.watches.setdefault(key, {})[self] = None
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        for key in self._keys:
            watching = self._hub.watches.get(key)
            if watching is not None:
                watching.pop(self, None)
                if not watching:
                    del self._hub.watches[key]

    def notify(self, key: str) -> None:
        """Note a change and wake the waiter, if there is one."""
        self._changed.append(key)
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def wait(self, timeout: float) -> bool:  # noqa: ASYNC109 - the caller's remaining time
        """Wait at most that long for a change since the last wait; return whether there is one."""
        if not self._changed and timeout > 0 and not self._hub.closed:
            loop = asyncio.get_running_loop()
            waiter = self._waiter = loop.create_future()
            timer = loop.call_later(timeout, _give_up, waiter)
            try:
                await waiter
            finally:
                timer.cancel()
                self._waiter = None
        self.heard, self._changed = self._changed, []
        return bool(self.heard)


class Hub:
    """All watches of this process. Lives on one event loop; `wake_soon` may be called anywhere."""

    def __init__(self) -> None:
        self.watches: dict[str, dict[Watch, None]] = {}
        self.handlers: dict[str, Callable[[str], None]] = {}
        """Handlers of messages from other servers, by topic."""
        self.closed = False
        self._rounds_alone = _ALONE
        self._loop: asyncio.AbstractEventLoop | None = None

    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        """Set the loop on which waiters live."""
        self._loop = loop

    def watch(self, *keys: str) -> Watch:
        """Return a watch on some keys."""
        return Watch(self, keys)

    def wake(self, keys: Iterable[str]) -> None:
        """Wake everybody who watches one of the keys; on the loop only."""
        for key in keys:
            for watch in tuple(self.watches.get(key, ())):
                watch.notify(key)

    def receive(self, keys: Iterable[str]) -> None:
        """Handle what another server sent: messages first, then wake-ups.

        A poll that a message answers must not be woken to look for itself.
        """
        self._rounds_alone = 0
        plain: list[str] = []
        for key in keys:
            if key.startswith(MESSAGE):
                topic, _, text = key.removeprefix(MESSAGE).partition(" ")
                if topic in self.handlers:
                    self.handlers[topic](text)
            else:
                plain.append(key)
        self.wake(plain)

    def has_peers(self) -> bool:
        """Return whether other servers use the same database."""
        return self._rounds_alone < _ALONE

    def note_round(self) -> None:
        """Count a round of repairs: every server announces itself with its own."""
        self._rounds_alone += 1

    def wake_all(self) -> None:
        """Wake everybody: some wake-ups may have been missed."""
        self.wake(tuple(self.watches))

    def wake_soon(self, keys: Iterable[str]) -> None:
        """Wake from another thread."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self.wake, tuple(keys))

    def close(self) -> None:
        """End all waiting, now and from now on: the server is about to stop."""
        self.closed = True
        self.wake_all()


def _give_up(waiter: "asyncio.Future[None]") -> None:
    if not waiter.done():
        waiter.set_result(None)
