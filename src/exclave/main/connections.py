"""Limits of HTTP connections: their number, and how long a client may stall one.

uvicorn limits neither the time for the head of a request nor the pauses in its body, so anybody
could hold a connection for ever by sending half a request.
"""

import resource
from asyncio import TimerHandle, Transport
from dataclasses import dataclass
from enum import Enum
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_MOST_FILES = 1 << 20
_OTHER_FILES = 256
"""Files that are no connections: database, blobs, listeners, pipes of worker processes."""
_CONTROL_PART = 3
"""One of so many connections may be to the Control API; the rest is for runners."""
_NO_BODY = (
    b"content-type: text/plain; charset=utf-8\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
)
_CLOSE_S = 5.0
"""How long a client may take to read the last bytes."""
LONGEST_HEAD = 1 << 16
TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\n" + _NO_BODY
TOO_LATE = b"HTTP/1.1 408 Request Timeout\r\n" + _NO_BODY
_TOO_MANY = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 5\r\n" + _NO_BODY


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Limits of one server; times in seconds."""

    connections: int
    head_s: float = 10.0
    """Limit for the whole head of a request, from its first byte or from the connection."""
    gap_s: float = 60.0
    """Limit between two chunks of a body; there is no limit for the whole body."""
    anonymous_s: float = 20.0
    """Limit for the whole body of a request without credentials."""
    drain_s: float = 10.0
    """Limit for the rest of a body whose request was already answered."""
    stall_s: float = 120.0
    """Limit while the client does not read the reply."""


class _Phase(Enum):
    """What is expected of the client next."""

    HEAD = "head"
    BODY = "body"
    NOTHING = "nothing"


def make_protocol(limits: ConnectionLimits) -> "type[GuardedProtocol]":
    """Return the protocol class of one server, whose connections are counted together."""
    waiting: dict[GuardedProtocol, None] = {}
    return type("_Protocol", (GuardedProtocol,), {"limits": limits, "waiting": waiting})


def raise_file_limit(most: int | None = None) -> int:
    """Raise the limit of open files to the maximum, or to `most`; return the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = _MOST_FILES if hard == resource.RLIM_INFINITY else hard
    wanted = min(allowed, most or _MOST_FILES)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return wanted
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return wanted


def share_connections(files: int, wanted: int = 0) -> tuple[int, int]:
    """Return how many connections the Control API and the Runner API may have."""
    total = max(files - _OTHER_FILES, files // 2)
    if wanted:
        total = min(total, wanted)
    control = max(1, total // _CONTROL_PART)
    return control, max(1, total - control)


class GuardedProtocol(HttpToolsProtocol):
    """uvicorn's protocol with limits; made by `make_protocol`."""

    limits: ConnectionLimits
    waiting: "dict[GuardedProtocol, None]"
    """Connections whose requests are all answered, longest without one first: at the limit of
    connections they make room for new ones."""
    received_before = b""
    """What was read of the connection before it got this protocol."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._phase = _Phase.HEAD
        self._timer: TimerHandle | None = None
        self._stalled: TimerHandle | None = None
        self._heard_at = 0.0
        self._body_at = 0.0
        self._head_bytes = 0
        self._drain = False

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """Register the connection; above the limit, close the one that has been idle longest."""
        super().connection_made(transport)
        if len(self.connections) > self.limits.connections and not self._make_room():
            self._close(_TOO_MANY)
            return
        self.waiting[self] = None
        self._arm(self.limits.head_s)
        if self.received_before:  # it is first: reading begins when this method has returned
            self.data_received(self.received_before)
            self.received_before = b""

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self.waiting.pop(self, None)
        self._disarm()
        self.resume_writing()
        super().connection_lost(exc)
        self._unset_keepalive_if_required()

    def data_received(self, data: bytes) -> None:
        """Parse the data, and start the timer for the rest of the request."""
        self._heard_at = self.loop.time()
        super().data_received(data)
        if self._phase is _Phase.HEAD and not self.transport.is_closing():
            self._head_bytes += len(data)
            if self._head_bytes > LONGEST_HEAD:
                self._close(TOO_LARGE)
        if self.transport.is_closing() or self._timer is not None:
            return
        if self._phase is _Phase.BODY:
            self._arm(min(self.limits.gap_s, self.limits.anonymous_s))
        elif self._phase is _Phase.HEAD or self._is_idle():
            self._arm(self.limits.head_s)

    def on_message_begin(self) -> None:
        """Start the timer for the head."""
        self._phase = _Phase.HEAD
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Start the timer for the body, if there is one."""
        self._phase = _Phase.BODY
        self._head_bytes = 0
        self._drain = False
        self._body_at = self._heard_at
        self.waiting.pop(self, None)
        self._disarm()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Stop the timers."""
        self._phase = _Phase.NOTHING
        self._disarm()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Wait for the next request, or briefly for the rest of this one."""
        super().on_response_complete()
        if self.transport.is_closing():
            self._abort_after(self.limits.stall_s)
            return
        if self._phase is _Phase.BODY:
            self._drain = True
            self._disarm()
            self._arm(self.limits.drain_s)
            self.waiting[self] = None
        elif self._is_idle():
            self.waiting[self] = None

    def pause_writing(self) -> None:
        """Start the timer for a client that does not read."""
        super().pause_writing()
        self._abort_after(self.limits.stall_s)

    def resume_writing(self) -> None:
        """Stop that timer."""
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None
        super().resume_writing()

    def timeout_keep_alive_handler(self) -> None:
        """End an idle connection, also one whose client has not read the last reply."""
        self.transport.abort()

    def _make_room(self) -> bool:
        oldest = next(iter(self.waiting), None)
        if oldest is None:
            return False
        del self.waiting[oldest]
        oldest.transport.abort()
        return True

    def _is_idle(self) -> bool:
        """Return whether no request is in progress and no other timer runs."""
        return self.cycle is None or (self.cycle.response_complete and not self.pipeline)

    def _arm(self, seconds: float) -> None:
        self._timer = self.loop.call_later(seconds, self._look)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        """Close the connection if the client is late."""
        self._timer = None
        if self.transport.is_closing():
            return
        left = self._find_time_left()
        if left > 0:
            self._arm(left)
            return
        answered = self.cycle is not None and self.cycle.response_started
        between = self._phase is _Phase.HEAD
        self._close(TOO_LATE if between or not answered else b"")

    def _close(self, last_words: bytes) -> None:
        self.transport.write(last_words)
        self.transport.close()
        self._abort_after(_CLOSE_S)

    def _abort_after(self, seconds: float) -> None:
        if self._stalled is None:
            self._stalled = self.loop.call_later(seconds, self.transport.abort)

    def _find_time_left(self) -> float:
        limits, now = self.limits, self.loop.time()
        if self.flow.read_paused:  # we are the side that does not read
            return limits.head_s
        if self._phase is not _Phase.BODY or self._drain:
            return 0.0
        left = self._heard_at + limits.gap_s - now
        if any(name == b"authorization" for name, _ in self.headers):
            return left
        return min(left, self._body_at + limits.anonymous_s - now)
