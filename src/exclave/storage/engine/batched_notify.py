"""News for people who watch at other servers: gathered for a moment, then sent together.

A NOTIFY makes commits wait for each other. Whoever waits for work is woken with the commit; whoever
only looks on can hear of it a moment later, and looks by himself if he does not.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from exclave.base.errors import Problem
from exclave.base.logs import Log
from exclave.storage.engine.hub import Hub

log = Log("news")

GATHER_S = 0.02
_SHOWN = ("workflow:", "job:", "log:", "install:", "installs", "build:")


def is_news(key: str) -> bool:
    """Tell whether a key is one that only people watch."""
    return key.startswith(_SHOWN)


class News:
    """What the other servers are told a moment after the commit."""

    def __init__(self, hub: Hub, send: Callable[[tuple[str, ...]], Awaitable[None]]) -> None:
        self._hub = hub
        self._send = send
        self._keys: dict[str, None] = {}
        self._sending: asyncio.Task[None] | None = None

    def add(self, keys: Iterable[str]) -> None:
        """Send these soon, if anybody is there to hear them."""
        found = [key for key in keys if is_news(key)]
        if not found or self._hub.closed or not self._hub.has_peers():
            return
        self._keys.update(dict.fromkeys(found))
        if self._sending is None:
            self._sending = asyncio.get_running_loop().create_task(self._gather())
            self._sending.add_done_callback(self._end)

    async def _gather(self) -> None:
        while self._keys:
            await asyncio.sleep(GATHER_S)
            if self._hub.closed:
                return
            keys, self._keys = tuple(self._keys), {}
            try:
                await self._send(keys)
            except Problem as problem:
                log.warning("news_not_sent", code=problem.code)

    def _end(self, _: "asyncio.Task[None]") -> None:
        self._sending = None
