"""Accept connections at a bounded rate, and serve those that have sent the head of a request.

A connection costs uvicorn some 80 µs of the event loop, whatever it is used for. A thousand that
are opened and closed at once would keep every other request waiting for a tenth of a second. So
they are accepted a few at a time, and one gets a transport, a parser and timers only once its first
request has a whole head. Until then it is a socket and a buffer. Connections that are in use are
never affected: only new ones wait in the kernel's queue while the rate is exceeded.
"""

import asyncio
import re
import socket
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from exclave.main.connections import (
    LONGEST_HEAD,
    TOO_LARGE,
    TOO_LATE,
    ConnectionLimits,
    GuardedProtocol,
)

RATE = 2000.0
"""Connections accepted per second in the long run: about a sixth of the loop's time."""
BURST = 128.0
"""Connections accepted at once after a quiet moment."""
_AT_ONCE = 16
"""Connections accepted before other events get their turn."""
_PAUSE_S = _AT_ONCE / RATE
_NO_FILES_S = 0.1
"""How long to wait when the process has no file descriptor left."""
_READ = 1 << 16
_REQUEST_LINE = re.compile(rb"[A-Z]{1,32} [^ \r\n]+ HTTP/1\.[01]\r")


@dataclass(slots=True)
class _Caller:
    """A connection that has not sent a whole head yet."""

    socket: socket.socket
    until: float
    received: bytes = b""


class Acceptor:
    """Listens on one socket; has the methods of an `asyncio.Server` that uvicorn calls."""

    def __init__(
        self,
        listening: socket.socket,
        limits: ConnectionLimits,
        make_protocol: Callable[[], GuardedProtocol],
        count_served: Callable[[], int],
    ) -> None:
        """Accept for protocols of one kind; `count_served` counts the connections that have one."""
        self.sockets = (listening,)
        self._listening = listening
        self._limits = limits
        self._make_protocol = make_protocol
        self._count_served = count_served
        self._loop = asyncio.get_running_loop()
        self._callers: dict[int, _Caller] = {}
        """By file descriptor, in the order in which they came."""
        self._closing: deque[socket.socket] = deque()
        """Connections to close: closing a thousand at once would block the loop."""
        self._serving: set[asyncio.Task[None]] = set()
        self._allowance = BURST
        self._counted_at = self._loop.time()
        self._resuming: asyncio.TimerHandle | None = None
        self._expiring: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Start accepting connections."""
        self._listening.setblocking(False)
        self._loop.add_reader(self._listening, self._accept)

    def close(self) -> None:
        """Stop accepting, and close connections that have sent no request."""
        self._loop.remove_reader(self._listening)
        self._listening.close()
        for timer in (self._resuming, self._expiring):
            if timer is not None:
                timer.cancel()
        for caller in list(self._callers.values()):
            self._drop(caller)
        while self._closing:
            self._closing.popleft().close()

    async def wait_closed(self) -> None:
        """Wait until connections that were just accepted have their protocols."""
        await asyncio.gather(*self._serving, return_exceptions=True)

    def count(self) -> int:
        """Return the number of connections that have not sent a request."""
        return len(self._callers) + len(self._closing)

    def _accept(self) -> None:
        now = self._loop.time()
        self._allowance = min(BURST, self._allowance + (now - self._counted_at) * RATE)
        self._counted_at = now
        for _ in range(min(_AT_ONCE, int(self._allowance))):
            try:
                accepted, _ = self._listening.accept()
            except BlockingIOError:
                return
            except ConnectionError:
                continue
            except OSError:
                self._drop_oldest()
                self._pause(_NO_FILES_S)
                return
            self._allowance -= 1
            self._add(accepted, now)
        if self._allowance < 1:
            self._pause(_PAUSE_S)

    def _pause(self, seconds: float) -> None:
        self._loop.remove_reader(self._listening)
        self._resuming = self._loop.call_later(seconds, self._resume)

    def _resume(self) -> None:
        self._loop.add_reader(self._listening, self._accept)

    def _add(self, accepted: socket.socket, now: float) -> None:
        if self._count_served() + self.count() >= self._limits.connections:
            self._drop_oldest()
        accepted.setblocking(False)
        caller = _Caller(accepted, now + self._limits.head_s)
        self._callers[accepted.fileno()] = caller
        self._loop.add_reader(accepted, self._read, caller)
        if self._expiring is None:
            self._expiring = self._loop.call_at(caller.until, self._expire)

    def _read(self, caller: _Caller) -> None:
        try:
            data = caller.socket.recv(_READ)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._drop(caller)
            return
        caller.received += data
        if _is_for_parser(caller.received):
            self._forget(caller)
            task = self._loop.create_task(self._serve(caller))
            self._serving.add(task)
            task.add_done_callback(self._serving.discard)
        elif len(caller.received) > LONGEST_HEAD:
            self._drop(caller, TOO_LARGE)

    async def _serve(self, caller: _Caller) -> None:
        """Hand a connection to uvicorn, with the bytes that were read already."""

        def make() -> GuardedProtocol:
            protocol = self._make_protocol()
            protocol.received_before = caller.received
            return protocol

        try:
            caller.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await self._loop.connect_accepted_socket(make, caller.socket)
        except OSError:
            caller.socket.close()

    def _expire(self) -> None:
        """Close connections whose time is over; the oldest comes first."""
        now = self._loop.time()
        self._expiring = None
        while self._callers:
            oldest = next(iter(self._callers.values()))
            if oldest.until > now:
                self._expiring = self._loop.call_at(oldest.until, self._expire)
                return
            self._drop(oldest, TOO_LATE)

    def _drop_oldest(self) -> None:
        """Close the oldest connection to free a file descriptor."""
        if self._callers:
            self._drop(next(iter(self._callers.values())))
        if self._closing:
            self._closing.popleft().close()

    def _drop(self, caller: _Caller, last_words: bytes = b"") -> None:
        self._forget(caller)
        if last_words:
            with suppress(OSError):
                caller.socket.send(last_words)
        if not self._closing:
            self._loop.call_soon(self._close_some)
        self._closing.append(caller.socket)

    def _close_some(self) -> None:
        for _ in range(min(_AT_ONCE, len(self._closing))):
            self._closing.popleft().close()
        if self._closing:
            self._loop.call_soon(self._close_some)

    def _forget(self, caller: _Caller) -> None:
        self._loop.remove_reader(caller.socket)
        del self._callers[caller.socket.fileno()]


def _is_for_parser(received: bytes) -> bool:
    """Return whether the bytes hold a whole head, or can no longer become one."""
    text = received.lstrip(b"\r\n")
    if b"\r\n\r\n" in text or b"\n\n" in text:
        return True
    line, end, _ = text.partition(b"\n")
    return bool(end) and _REQUEST_LINE.fullmatch(line) is None
