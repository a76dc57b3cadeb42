"""A TCP relay in front of a server: counts what passes, and cuts connections on demand."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit


@dataclass
class Relay:
    """Passes connections on to a server; runs in a thread of its own."""

    port: int
    """Of the server, on loopback."""
    url: str = ""
    up: int = 0
    """Bytes that went to the server."""
    down: int = 0
    cuts: list[int] = field(default_factory=list)
    """The next connection to pass this many bytes in one direction breaks; first one first."""
    broken: int = 0
    """How many connections were cut."""

    def reset(self) -> None:
        """Begin to count anew."""
        self.up = self.down = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Relay one connection until an end hangs up or it is cut."""
        back_reader, back_writer = await asyncio.open_connection("127.0.0.1", self.port)
        ways = (
            asyncio.create_task(self._pass_on(reader, back_writer, is_up=True)),
            asyncio.create_task(self._pass_on(back_reader, writer, is_up=False)),
        )
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            for end in (writer, back_writer):
                # An abort is a reset on the wire, as when something in between dies.
                end.transport.abort()
            await asyncio.gather(*ways, return_exceptions=True)

    async def _pass_on(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_up: bool
    ) -> None:
        passed = 0
        while data := await reader.read(1 << 18):
            passed += len(data)
            if self.cuts and passed >= self.cuts[0]:
                self.cuts.pop(0)
                self.broken += 1
                return
            if is_up:
                self.up += len(data)
            else:
                self.down += len(data)
            writer.write(data)
            await writer.drain()


@contextmanager
def open_relay(server: str) -> Iterator[Relay]:
    """Start a relay in front of the server at a URL."""
    port = urlsplit(server).port
    assert port is not None
    relay = Relay(port)
    loop = asyncio.new_event_loop()
    listener = loop.run_until_complete(
        asyncio.start_server(relay.serve, "127.0.0.1", 0, limit=1 << 20)
    )
    relay.url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield relay
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        listener.close()
        loop.run_until_complete(_end_tasks(loop))
        loop.close()


async def _end_tasks(loop: asyncio.AbstractEventLoop) -> None:
    """Cancel what still runs, and let transports that were aborted close."""
    tasks = asyncio.all_tasks(loop) - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.sleep(0)
