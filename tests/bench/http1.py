"""The least of HTTP/1.1 that a load generator needs: one kept connection, one request at a time."""

import asyncio
import json
from typing import Any

_END = b"\r\n\r\n"
_LENGTH = b"content-length: "


class Connection(asyncio.Protocol):
    """A connection to one of the two APIs, with its bearer token."""

    def __init__(self, token: str) -> None:
        self.show(token)
        self._transport: asyncio.Transport | None = None
        self._buffer = b""
        self._reply: asyncio.Future[tuple[int, bytes]] | None = None

    @classmethod
    async def open(cls, port: int, token: str) -> "Connection":
        """Connect to this machine."""
        loop = asyncio.get_running_loop()
        _, made = await loop.create_connection(lambda: cls(token), "127.0.0.1", port)
        return made

    def show(self, token: str) -> None:
        """Show this token from now on."""
        self._head = f"host: bench\r\nauthorization: Bearer {token}\r\n"

    async def get(self, path: str) -> Any:
        """Ask for something and return the JSON of a good answer."""
        return await self._send(path, f"GET {path} HTTP/1.1\r\n{self._head}\r\n".encode())

    async def post(self, path: str, body: object) -> Any:
        """Send JSON and return the JSON of a good answer."""
        sent = json.dumps(body).encode()
        head = (
            f"POST {path} HTTP/1.1\r\n{self._head}content-type: application/json\r\n"
            f"content-length: {len(sent)}\r\n\r\n"
        )
        return await self._send(path, head.encode() + sent)

    async def _send(self, path: str, request: bytes) -> Any:
        self._reply = asyncio.get_running_loop().create_future()
        if self._transport is None or self._transport.is_closing():
            raise ConnectionError("the connection is closed")
        self._transport.write(request)
        status, reply = await self._reply
        if status >= 300:
            raise RuntimeError(f"{path} answered {status}: {reply[:300].decode()}")
        return json.loads(reply)

    def close(self) -> None:
        """Hang up."""
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, found, rest = self._buffer.partition(_END)
        if not found:
            return
        lowered = head.lower()
        at = lowered.index(_LENGTH) + len(_LENGTH)
        length = int(lowered[at:].split(b"\r\n", 1)[0])
        if len(rest) >= length and self._reply is not None and not self._reply.done():
            self._buffer = rest[length:]
            self._reply.set_result((int(head[9:12]), rest[:length]))

    def connection_lost(self, error: Exception | None) -> None:
        if self._reply is not None and not self._reply.done():
            self._reply.set_exception(error or ConnectionError("the server hung up"))
