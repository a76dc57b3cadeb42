"""An HTTP server on the loopback interface, for the commands of one execution.

Every process of the machine can connect to it. A connection is a stranger until it has shown a
secret of the execution: there are only a few strangers at a time, and they have to be quick.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from http import HTTPStatus
from types import TracebackType
from typing import Final, Self

import h11

from exclave.base.ids import Randomness

MAX_HEAD: Final = 64 << 10
_CHUNK: Final = 1 << 16
_SECRET_BITS: Final = 256
_MOST_STRANGERS: Final = 64
"""One more stranger ends the connection of the oldest one."""
_HEAD_WITHIN_S: Final = 10.0
_CHUNK_WITHIN_S: Final = 60.0


def make_secret(randomness: Randomness) -> str:
    """Return a new secret that opens the server."""
    return f"{randomness.bits(_SECRET_BITS):064x}"


class CommandConnection:
    """One connection to the server; `is_stranger` until the secret was shown on it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.http = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD)
        self.is_stranger = True

    async def receive_head(self) -> h11.Request | None:
        """Return the head of a request; None if the client is done.

        Only a stranger has to be quick. Others may keep an idle connection: closing it could fail
        a request that the client is just sending.
        """
        async with asyncio.timeout(_HEAD_WITHIN_S if self.is_stranger else None):
            event = await self._receive()
        return event if isinstance(event, h11.Request) else None

    async def receive_body(self, most: int) -> bytes | None:
        """Return the body of a request; None if it has more bytes than that.

        A larger body is read all the same, so that the client reads the answer.
        """
        body = bytearray()
        while True:
            async with asyncio.timeout(_CHUNK_WITHIN_S):
                event = await self._receive()
            match event:
                case h11.Data():
                    if len(body) <= most:
                        body += event.data
                case h11.EndOfMessage() | h11.PAUSED:
                    return bytes(body) if len(body) <= most else None
                case _:
                    raise ConnectionError("the body was cut off")

    async def read_body(self) -> AsyncIterator[bytes]:
        """Yield the body of a request as it arrives."""
        while True:
            async with asyncio.timeout(_CHUNK_WITHIN_S):
                event = await self._receive()
            match event:
                case h11.Data():
                    yield bytes(event.data)
                case h11.EndOfMessage() | h11.PAUSED:
                    return
                case _:
                    raise ConnectionError("the body was cut off")

    async def await_end(self) -> None:
        """Return when the client hangs up; what it sends meanwhile is its next request."""
        while data := await self.reader.read(_CHUNK):
            self.http.receive_data(data)
            if len(self.http.trailing_data[0]) > MAX_HEAD:
                return

    def send(self, event: h11.Event) -> None:
        """Write an event to the client."""
        self.writer.write(self.http.send(event) or b"")

    async def reply(self, status: HTTPStatus, body: bytes) -> None:
        """Answer a request with a JSON body."""
        headers = [("Content-Length", str(len(body))), ("Content-Type", "application/json")]
        reason = status.phrase.encode()
        self.send(h11.Response(status_code=status, headers=headers, reason=reason))
        self.send(h11.Data(data=body))
        self.send(h11.EndOfMessage())
        await self.writer.drain()

    def start_next(self) -> bool:
        """Prepare for another request; return False if the connection cannot be used again."""
        if self.http.states != {h11.CLIENT: h11.DONE, h11.SERVER: h11.DONE}:
            return False
        self.http.start_next_cycle()
        return True

    async def _receive(self) -> object:
        while (event := self.http.next_event()) is h11.NEED_DATA:
            if self.http.they_are_waiting_for_100_continue:
                self.send(h11.InformationalResponse(status_code=100, headers=[]))
            self.http.receive_data(await self.reader.read(_CHUNK))
        return event


Answer = Callable[[CommandConnection, h11.Request], Awaitable[bool]]
"""Answers a request, of which only the head was read; returns whether to read another one."""


class LoopbackServer:
    """Serves while the block lasts; connections that are open at its end are cancelled."""

    def __init__(self, answer: Answer, *, port: int = 0) -> None:
        self._answer = answer
        self._port = port
        self._server: asyncio.Server | None = None
        self._open: dict[CommandConnection, asyncio.Task[None] | None] = {}

    async def __aenter__(self) -> Self:
        try:
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port)
        except OSError:
            # Somebody else has the wanted port: any other does.
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._server is not None:
            self._server.close()
        await self.end_connections()

    @property
    def address(self) -> str:
        """The URL of the server, without a path."""
        if self._server is None:
            raise RuntimeError("the server is not open")
        port = self._server.sockets[0].getsockname()[1]
        return f"http://127.0.0.1:{port}"

    async def end_connections(self) -> None:
        """End all connections, in the middle of an answer too."""
        tasks = [task for task in self._open.values() if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = CommandConnection(reader, writer)
        self._open[connection] = asyncio.current_task()
        for stranger in self._list_strangers()[:-_MOST_STRANGERS]:
            stranger.writer.transport.abort()
        try:
            while (request := await connection.receive_head()) is not None:
                if not await self._answer(connection, request) or not connection.start_next():
                    return
        except (OSError, h11.ProtocolError, asyncio.CancelledError):
            pass  # the command is gone, is too slow, or does not speak HTTP
        finally:
            del self._open[connection]
            writer.close()

    def _list_strangers(self) -> Sequence[CommandConnection]:
        """Return the connections that have not shown the secret, the oldest first."""
        return [connection for connection in self._open if connection.is_stranger]


class LoopbackService:
    """What answers the commands of a job, with a server that is open while the block lasts."""

    def __init__(self, answer: Answer, *, port: int = 0) -> None:
        self._server = LoopbackServer(answer, port=port)

    async def __aenter__(self) -> Self:
        await self._server.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._server.__aexit__(kind, error, trace)
