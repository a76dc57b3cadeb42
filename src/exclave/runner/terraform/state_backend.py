"""Terraform's HTTP backend on the loopback interface, with a password per execution."""

import asyncio
import base64
import hashlib
import hmac
import json
from http import HTTPStatus
from types import TracebackType
from typing import Protocol, Self
from urllib.parse import parse_qs, urlsplit

import h11

from exclave.base.errors import Problem
from exclave.base.ids import Randomness
from exclave.base.json_values import parse_object
from exclave.base.logs import Log
from exclave.client.problems import RemoteProblem
from exclave.wire.states import MAX_STATE, LockInfo

_log = Log("runner.proxy")

_USER = "exclave"
_CHUNK = 1 << 16
_SECRET_BITS = 256
_MOST_STRANGERS = 64
"""Maximum number of unauthenticated connections; one more closes the oldest."""
_HEAD_WITHIN_S = 10.0
_CHUNK_WITHIN_S = 60.0


class Backend(Protocol):
    """The store behind the proxy."""

    async def read(self) -> bytes | None:
        """Return the state."""
        ...

    async def write(self, lock_id: str, data: bytes) -> None:
        """Write a state."""
        ...

    async def lock(self, lock: LockInfo) -> None:
        """Acquire the lock."""
        ...

    async def unlock(self, lock_id: str) -> None:
        """Release the lock."""
        ...


class _Refused(Exception):  # noqa: N818 - an answer, not an error
    def __init__(self, status: HTTPStatus, body: bytes = b"") -> None:
        super().__init__(status.phrase)
        self.status = status
        self.body = body


class StateProxy:
    """Serves while the block lasts; requests that still wait at its end are cancelled."""

    def __init__(self, backend: Backend, randomness: Randomness) -> None:
        self._backend = backend
        self._path = f"/{randomness.bits(_SECRET_BITS):064x}"
        self._password = f"{randomness.bits(_SECRET_BITS):064x}"
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()
        self._strangers: dict[asyncio.StreamWriter, None] = {}

    async def __aenter__(self) -> Self:
        """Listen on a free port of the loopback."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop listening and end open requests."""
        if self._server is not None:
            self._server.close()
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    @property
    def secrets(self) -> list[str]:
        """The secrets to mask."""
        return [self._password, self._path[1:]]

    @property
    def env(self) -> dict[str, str]:
        """The variables that configure the backend, which Terraform writes to no file."""
        if self._server is None:
            raise RuntimeError("the proxy is not open")
        port = self._server.sockets[0].getsockname()[1]
        address = f"http://127.0.0.1:{port}{self._path}"
        return {
            "TF_HTTP_ADDRESS": address,
            "TF_HTTP_LOCK_ADDRESS": address,
            "TF_HTTP_UNLOCK_ADDRESS": address,
            "TF_HTTP_LOCK_METHOD": "LOCK",
            "TF_HTTP_UNLOCK_METHOD": "UNLOCK",
            "TF_HTTP_UPDATE_METHOD": "POST",
            "TF_HTTP_USERNAME": _USER,
            "TF_HTTP_PASSWORD": self._password,
            "TF_HTTP_RETRY_MAX": "0",
        }

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._open.add(task)
            task.add_done_callback(self._open.discard)
        self._admit(writer)
        try:
            await self._converse(reader, writer)
        except (OSError, h11.RemoteProtocolError, asyncio.CancelledError):
            pass  # the client is gone
        finally:
            self._strangers.pop(writer, None)
            writer.close()

    def _admit(self, writer: asyncio.StreamWriter) -> None:
        """Admit a connection; above the limit, abort the oldest that has not authenticated."""
        self._strangers[writer] = None
        if len(self._strangers) > _MOST_STRANGERS:
            oldest = next(iter(self._strangers))
            del self._strangers[oldest]
            oldest.transport.abort()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = h11.Connection(h11.SERVER)
        while connection.states[h11.CLIENT] is not h11.CLOSED:
            request = await self._receive_head(connection, reader, writer)
            if request is None:
                return
            known = self._is_authorised(request)
            if known:
                self._strangers.pop(writer, None)
                status, body = await self._answer(connection, reader, request)
            else:
                status, body = HTTPStatus.UNAUTHORIZED, b""
            for event in _write_response(status, body):
                writer.write(connection.send(event) or b"")
            await writer.drain()
            # The body of an unauthenticated request was not read: the connection must be closed.
            if not known or connection.states != {h11.CLIENT: h11.DONE, h11.SERVER: h11.DONE}:
                return
            connection.start_next_cycle()

    async def _receive_head(
        self,
        connection: h11.Connection,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> h11.Request | None:
        """Return the head of a request; None if the client is done or too slow to authenticate.

        An authenticated client may keep an idle connection: closing it could fail a request that
        Terraform is just sending.
        """
        within_s = _HEAD_WITHIN_S if writer in self._strangers else None
        async with asyncio.timeout(within_s):
            event = await _receive_event(connection, reader)
        return event if isinstance(event, h11.Request) else None

    async def _answer(
        self, connection: h11.Connection, reader: asyncio.StreamReader, request: h11.Request
    ) -> tuple[HTTPStatus, bytes]:
        body = await _receive_body(connection, reader)
        try:
            query = self._check(request, body)
            return await self._act(request.method.decode(), parse_qs(query), body)
        except _Refused as refused:
            return refused.status, refused.body
        except RemoteProblem as problem:
            _log.warning("state_call_refused", code=problem.code)
            return _describe_problem(problem)
        except (Problem, OSError, ValueError, KeyError, TypeError) as error:
            _log.error("state_call_failed", exc=error)
            return HTTPStatus.INTERNAL_SERVER_ERROR, str(error).encode()

    def _is_authorised(self, request: h11.Request) -> bool:
        given = dict(request.headers).get(b"authorization", b"")
        wanted = base64.b64encode(f"{_USER}:{self._password}".encode())
        return hmac.compare_digest(given, b"Basic " + wanted)

    def _check(self, request: h11.Request, body: bytes) -> str:
        url = urlsplit(request.target.decode())
        if url.path != self._path:
            raise _Refused(HTTPStatus.FORBIDDEN)
        if len(body) > MAX_STATE:
            message = f"a state has at most {MAX_STATE} bytes"
            raise _Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, message.encode())
        checksum = dict(request.headers).get(b"content-md5")
        real = base64.b64encode(hashlib.md5(body, usedforsecurity=False).digest())
        if checksum is not None and checksum != real:
            raise _Refused(HTTPStatus.BAD_REQUEST, b"the body was damaged on its way")
        return url.query

    async def _act(
        self, method: str, query: dict[str, list[str]], body: bytes
    ) -> tuple[HTTPStatus, bytes]:
        match method:
            case "GET":
                state = await self._backend.read()
                return (HTTPStatus.NOT_FOUND, b"") if state is None else (HTTPStatus.OK, state)
            case "POST":
                await self._backend.write(query.get("ID", [""])[0], body)
            case "LOCK":
                await self._backend.lock(_read_lock(body))
            case "UNLOCK":
                await self._backend.unlock(_read_lock(body).id)
            case _:
                return HTTPStatus.METHOD_NOT_ALLOWED, b""
        return HTTPStatus.OK, b""


def _read_lock(body: bytes) -> LockInfo:
    lock = parse_object(body, "the lock")
    names = ("id", "operation", "info", "who", "version", "created")
    lower = {key.lower(): value for key, value in lock.items()}
    return LockInfo(**{name: str(lower.get(name) or "") for name in names})


def _describe_problem(problem: RemoteProblem) -> tuple[HTTPStatus, bytes]:
    """Return status and body as Terraform's http backend expects: 423 with the holder, else 409."""
    if problem.code != "lock_held":
        return HTTPStatus.CONFLICT, problem.message.encode()
    held = problem.facts.get("lock")
    lock = held if isinstance(held, dict) else {}
    names = {
        "id": "ID",
        "operation": "Operation",
        "info": "Info",
        "who": "Who",
        "version": "Version",
        "created": "Created",
    }
    return HTTPStatus.LOCKED, json.dumps(
        {name: lock[key] for key, name in names.items() if lock.get(key)}
    ).encode()


async def _receive_event(connection: h11.Connection, reader: asyncio.StreamReader) -> object:
    while (event := connection.next_event()) is h11.NEED_DATA:
        connection.receive_data(await reader.read(_CHUNK))
    return event


async def _receive_body(connection: h11.Connection, reader: asyncio.StreamReader) -> bytes:
    """Return the body of a request; one that is too large is cut right above the limit."""
    body = bytearray()
    while True:
        async with asyncio.timeout(_CHUNK_WITHIN_S):
            event = await _receive_event(connection, reader)
        match event:
            case h11.Data():
                if len(body) <= MAX_STATE:
                    body += event.data
            case h11.EndOfMessage():
                return bytes(body)
            case _:
                raise ConnectionError("the body was cut off")


def _write_response(status: HTTPStatus, body: bytes) -> list[h11.Event]:
    headers = [("Content-Length", str(len(body))), ("Content-Type", "application/json")]
    return [
        h11.Response(status_code=status, headers=headers, reason=status.phrase.encode()),
        h11.Data(data=body),
        h11.EndOfMessage(),
    ]
