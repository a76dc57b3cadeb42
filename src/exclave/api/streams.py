"""Server-sent events that survive proxies, notice revoked tokens and end with `end`."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, suppress

from fastapi.sse import format_sse_event
from starlette.responses import StreamingResponse
from starlette.types import Send

from exclave.base.errors import Problem
from exclave.base.logs import Log

log = Log("streams")

PING_S = 10.0
_PING = format_sse_event(comment="ping")
_OPENING = format_sse_event(comment="open", retry=1000)
_END = format_sse_event(event="end", data_str="{}")
_MOST_WAITING = 256
_HEADERS = {"Cache-Control": "no-store, no-transform", "X-Accel-Buffering": "no"}

Check = Callable[[], Awaitable[object]]


class EventStream(StreamingResponse):
    """A response of events; its source is closed whatever ends it."""

    media_type = "text/event-stream"

    async def stream_response(self, send: Send) -> None:
        """Send events until the source ends or the client disconnects."""
        source = self.body_iterator
        assert isinstance(source, AsyncGenerator)  # noqa: S101 - made by `open_stream`
        async with aclosing(source):
            await super().stream_response(send)


def open_stream(
    events: AsyncGenerator[bytes], check: Check, is_stopping: Callable[[], bool]
) -> EventStream:
    """Return a stream of events. `check` runs at every ping and ends the stream by a problem.

    The `end` event means that nothing more will come; a server that stops just hangs up.
    """
    return EventStream(_pump(events, check, is_stopping), headers=_HEADERS)


def write_event(name: str, data: str, event_id: str) -> bytes:
    """Return an event in the text format."""
    return format_sse_event(event=name, data_str=data, id=event_id)


async def _pump(
    events: AsyncGenerator[bytes], check: Check, is_stopping: Callable[[], bool]
) -> AsyncGenerator[bytes]:
    queue: asyncio.Queue[bytes | None] = asyncio.Queue(_MOST_WAITING)
    feeder = asyncio.create_task(_feed(events, queue))
    try:
        yield _OPENING
        async for chunk in _drain(queue, check):
            yield chunk
        await feeder
        if not is_stopping():
            yield _END
    except Problem as problem:
        log.warning("stream_refused", code=problem.code)
    finally:
        feeder.cancel()
        with suppress(asyncio.CancelledError, Problem):
            await feeder


async def _feed(events: AsyncGenerator[bytes], queue: "asyncio.Queue[bytes | None]") -> None:
    try:
        async with aclosing(events):
            async for event in events:
                await queue.put(event)
    finally:
        with suppress(asyncio.QueueFull):
            queue.put_nowait(None)


async def _drain(queue: "asyncio.Queue[bytes | None]", check: Check) -> AsyncIterator[bytes]:
    """Yield waiting events in one chunk; ping in between, and check the reader's access again."""
    loop = asyncio.get_running_loop()
    due = loop.time() + PING_S
    while True:
        chunk: bytes | None = _PING
        with suppress(TimeoutError):
            async with asyncio.timeout_at(due):
                chunk = await queue.get()
        if loop.time() >= due:
            await check()
            due = loop.time() + PING_S
        while chunk is not None and not queue.empty():
            more = queue.get_nowait()
            if more is None:
                yield chunk
                return
            chunk += more
        if chunk is None:
            return
        yield chunk
