"""NOTIFY for keys that only people watch: sent a moment after the commit, many at a time."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from exclave.base.errors import Problem
from exclave.base.logs import Log
from exclave.storage.engine.hub import Hub

log = Log("batched_notify")

GATHER_S = 0.02
_WATCHED_BY_PEOPLE = ("workflow:", "job:", "log:", "install:", "installs", "build:")


def is_batched(key: str) -> bool:
    """Return whether only people watch a key: no work waits for it."""
    return key.startswith(_WATCHED_BY_PEOPLE)


class BatchedNotify:
    """Gathers keys of committed transactions for 20 ms, then notifies the other servers once.

    Why this exists: PostgreSQL makes committing transactions that hold a NOTIFY wait for each
    other. Work depends on some wake-ups (a queue has a job, a job is cancelled, a timer is
    due), which therefore go with the commit. The others only refresh somebody's screen. Sending
    those separately keeps most commits free of a NOTIFY.

    A batch that is lost does no harm: watchers look again by themselves after a while. A server
    that hears of no other server sends none.
    """

    def __init__(self, hub: Hub, send: Callable[[tuple[str, ...]], Awaitable[None]]) -> None:
        self._hub = hub
        self._send = send
        self._keys: dict[str, None] = {}
        self._sending: asyncio.Task[None] | None = None

    def add(self, keys: Iterable[str]) -> None:
        """Send the keys that may wait, if there are other servers."""
        batched = [key for key in keys if is_batched(key)]
        if not batched or self._hub.closed or not self._hub.has_peers():
            return
        self._keys.update(dict.fromkeys(batched))
        if self._sending is None:
            self._sending = asyncio.get_running_loop().create_task(self._send_batches())
            self._sending.add_done_callback(self._end)

    async def _send_batches(self) -> None:
        while self._keys:
            await asyncio.sleep(GATHER_S)
            if self._hub.closed:
                return
            keys, self._keys = tuple(self._keys), {}
            try:
                await self._send(keys)
            except Problem as problem:
                log.warning("notify_not_sent", code=problem.code)

    def _end(self, _: "asyncio.Task[None]") -> None:
        self._sending = None
