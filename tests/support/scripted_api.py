"""A server on the loopback that answers like an API server that has a bad day."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from exclave.base.json_values import Json


@dataclass(frozen=True, slots=True)
class Seen:
    """A request that reached the server."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer. `drop` closes the connection instead; chunks of a stream follow each other."""

    status: int = 200
    body: bytes = b"{}"
    headers: Mapping[str, str] = field(default_factory=dict)
    chunks: tuple[bytes, ...] = ()
    drop: bool = False
    hang: bool = False


def say(document: Json, status: int = 200, **headers: str) -> Reply:
    """Return an answer with a JSON document."""
    return Reply(status, json.dumps(document).encode(), headers)


def refuse(code: int, reason: str, message: str, **headers: str) -> Reply:
    """Return an answer with a Status, as an API server refuses."""
    status: Json = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "reason": reason,
        "message": message,
        "code": code,
    }
    return say(status, code, **headers)


class ScriptedApi:
    """Answers each path with the next of its replies; the last one stays."""

    def __init__(self, script: Mapping[str, list[Reply]]) -> None:
        self._script = {path: list(replies) for path, replies in script.items()}
        self.seen: list[Seen] = []
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()

    def answer(self, script: Mapping[str, list[Reply]]) -> None:
        """Answer these paths from now on."""
        self._script |= {path: list(replies) for path, replies in script.items()}

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    def count(self, method: str, path: str) -> int:
        return sum(seen.method == method and seen.path == path for seen in self.seen)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        task.add_done_callback(self._open.discard)
        try:
            while await self._answer(reader, writer):
                pass
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        first, *lines = head.rstrip().split("\r\n")
        method, target, _ = first.split(" ")
        headers = {
            name.lower(): value for name, _, value in (line.partition(": ") for line in lines)
        }
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        self.seen.append(Seen(method, target, headers, body))
        replies = self._script[target.partition("?")[0]]
        reply = replies.pop(0) if len(replies) > 1 else replies[0]
        if reply.hang:
            await asyncio.sleep(3600)
        if reply.drop:
            return False
        await _write(writer, reply)
        return not reply.chunks


class RotatingToken:
    """Tokens that are refused one after the other, until the last one is left."""

    def __init__(self, *tokens: str) -> None:
        self.tokens = list(tokens)

    async def read_headers(self) -> Mapping[str, str]:
        """Return the header with the current token."""
        return {"Authorization": f"Bearer {self.tokens[0]}"}

    async def renew(self) -> bool:
        """Go to the next token; return False if there is no other."""
        if len(self.tokens) == 1:
            return False
        self.tokens.pop(0)
        return True


async def _write(writer: asyncio.StreamWriter, reply: Reply) -> None:
    headers = dict(reply.headers)
    if not reply.chunks:
        headers |= {"Content-Length": str(len(reply.body))}
    else:
        headers |= {"Connection": "close"}
    lines = [f"HTTP/1.1 {reply.status} x", *(f"{name}: {value}" for name, value in headers.items())]
    writer.write("\r\n".join([*lines, "", ""]).encode())
    for chunk in reply.chunks or (reply.body,):
        writer.write(chunk)
        await writer.drain()
