"""A proxy on the loopback to one cluster, for the commands of one execution.

The commands get a kubeconfig without any credential; its address has a random secret in it. The
proxy adds the credential and renews it, refuses changes while a plan is made, and notes every
change before it is sent.
"""

import asyncio
import hmac
import json
from collections.abc import Callable, Mapping
from http import HTTPStatus
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self

import h11

from exclave.base.errors import Problem
from exclave.base.ids import Randomness
from exclave.base.logs import Log
from exclave.runner.jobs.workspace import Workspace
from exclave.runner.kube.access.proxy_rules import Mode, Verdict, decide
from exclave.runner.kube.access.proxy_upstream import Sent, Upstream
from exclave.runner.kube.api.connection import Connection

_log = Log("runner.kube.proxy")

MAX_BODY: Final = 8 << 20
"""Largest body of a request; an API server takes 3 MiB."""
_MAX_HEAD: Final = 64 << 10
_CHUNK: Final = 1 << 16
_SECRET_BITS: Final = 256
_MOST_STRANGERS: Final = 64
"""Maximum number of connections that have not shown the secret; one more ends the oldest."""
_HEAD_WITHIN_S: Final = 10.0
_CHUNK_WITHIN_S: Final = 60.0


class Change(NamedTuple):
    """A request that may change the cluster: before it is sent, and when it was answered."""

    method: str
    path: str
    status: int | None = None


NoteChange = Callable[[Change], None]
"""Writes a change down; called in a thread, and awaited before the change is sent."""


class ClusterProxy:
    """Serves while the block lasts; requests that are open at its end are cancelled."""

    def __init__(
        self,
        connection: Connection,
        randomness: Randomness,
        *,
        mode: Mode,
        note: NoteChange | None = None,
    ) -> None:
        self._upstream = Upstream(connection)
        self._mode = mode
        self._note = note
        self._secret = f"{randomness.bits(_SECRET_BITS):064x}"
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()
        self._strangers: dict[asyncio.StreamWriter, None] = {}
        self.refused = 0
        """How many changes were refused because this is a plan."""

    async def __aenter__(self) -> Self:
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
        await self.close()
        await self._upstream.close()

    async def close(self) -> None:
        """Refuse every further request with 401 and end those that are open, watches too."""
        self._mode = Mode.CLOSED
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    @property
    def secrets(self) -> list[str]:
        """The secrets to mask."""
        return [self._secret]

    @property
    def url(self) -> str:
        """The address of the cluster for the commands of this execution."""
        if self._server is None:
            raise RuntimeError("the proxy is not open")
        port = self._server.sockets[0].getsockname()[1]
        return f"http://127.0.0.1:{port}/{self._secret}"

    def write_kubeconfig(self, workspace: Workspace, namespace: str = "default") -> Path:
        """Write the kubeconfig of the commands; it belongs to the job's user."""
        name = "exclave"
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": name,
            "clusters": [{"name": name, "cluster": {"server": self.url}}],
            "users": [{"name": name, "user": {}}],
            "contexts": [
                {
                    "name": name,
                    "context": {"cluster": name, "user": name, "namespace": namespace},
                }
            ],
        }
        file = workspace.folder / "kubeconfig"
        workspace.write(file, json.dumps(document).encode())
        return file

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._open.add(task)
            task.add_done_callback(self._open.discard)
        self._admit(writer)
        try:
            await _Conversation(self, reader, writer).run()
        except (OSError, TimeoutError, h11.ProtocolError, asyncio.CancelledError):
            pass  # the command is gone, or it does not speak HTTP
        finally:
            self._strangers.pop(writer, None)
            writer.close()

    def _admit(self, writer: asyncio.StreamWriter) -> None:
        self._strangers[writer] = None
        if len(self._strangers) > _MOST_STRANGERS:
            oldest = next(iter(self._strangers))
            del self._strangers[oldest]
            oldest.transport.abort()

    def is_stranger(self, writer: asyncio.StreamWriter) -> bool:
        """Return whether a connection has not shown the secret yet."""
        return writer in self._strangers

    def recognise(self, writer: asyncio.StreamWriter, target: str) -> str | None:
        """Return the target without the secret; None if the secret is wrong."""
        secret, slash, rest = target.removeprefix("/").partition("/")
        if not hmac.compare_digest(secret.encode(), self._secret.encode()) or not slash:
            return None
        self._strangers.pop(writer, None)
        return f"/{rest}"

    def decide(self, method: str, target: str) -> Verdict:
        """Return what becomes of a request, and count the refused ones."""
        verdict = decide(self._mode, method, target)
        self.refused += verdict.changes and not verdict.passes
        return verdict

    async def send(
        self, request: h11.Request, target: str, body: bytes, *, changes: bool, upgrade: bool
    ) -> Sent:
        """Send a request to the cluster; a change is noted before it is sent."""
        method = request.method.decode()
        change = Change(method, target.partition("?")[0])
        if changes and self._note is not None:
            await asyncio.to_thread(self._note, change)
        sent = await self._upstream.send(method, target, request.headers, body, upgrade=upgrade)
        if changes and self._note is not None:
            await asyncio.to_thread(self._note, change._replace(status=sent.status))
        return sent


class _Conversation:
    """One connection of a command."""

    def __init__(
        self, proxy: ClusterProxy, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._proxy = proxy
        self._reader = reader
        self._writer = writer
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=_MAX_HEAD)

    async def run(self) -> None:
        while self._http.states[h11.CLIENT] is not h11.CLOSED:
            within_s = _HEAD_WITHIN_S if self._proxy.is_stranger(self._writer) else None
            async with asyncio.timeout(within_s):
                request = await self._receive()
            if not isinstance(request, h11.Request) or not await self._answer(request):
                return
            if self._http.states != {h11.CLIENT: h11.DONE, h11.SERVER: h11.DONE}:
                return
            self._http.start_next_cycle()

    async def _answer(self, request: h11.Request) -> bool:
        """Answer a request; return whether the connection can be used again."""
        target = self._proxy.recognise(self._writer, request.target.decode())
        if target is None:
            # The body of a stranger is not read, so the connection cannot go on.
            await self._refuse(HTTPStatus.UNAUTHORIZED, "this proxy is for the commands of one job")
            return False
        upgrade = any(name == b"upgrade" for name, _ in request.headers)
        verdict = self._proxy.decide(request.method.decode(), target)
        body = await self._receive_body(keep=verdict.passes)
        if body is None:
            message = f"the body has more than {MAX_BODY >> 20} MiB"
            await self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, message)
            return False
        if not verdict.passes:
            await self._refuse(verdict.status, verdict.message)
            return True
        try:
            sent = await self._proxy.send(
                request, target, body, changes=verdict.changes, upgrade=upgrade
            )
        except Problem as problem:
            await self._refuse(HTTPStatus.BAD_GATEWAY, problem.message)
            return True
        try:
            await self._pass_on(sent)
        finally:
            await sent.close()
        return True

    async def _pass_on(self, sent: Sent) -> None:
        if sent.status == HTTPStatus.SWITCHING_PROTOCOLS:
            self._send(h11.InformationalResponse(status_code=sent.status, headers=sent.headers))
            await sent.pump(self._reader, self._writer, self._http.trailing_data[0])
            return
        self._send(h11.Response(status_code=sent.status, headers=sent.headers))
        gone = asyncio.ensure_future(self._await_end())
        passing = asyncio.ensure_future(self._pass_body(sent))
        try:
            await asyncio.wait((gone, passing), return_when=asyncio.FIRST_COMPLETED)
            if passing.done():
                passing.result()
        finally:
            for task in (gone, passing):
                task.cancel()
            await asyncio.gather(gone, passing, return_exceptions=True)

    async def _pass_body(self, sent: Sent) -> None:
        async for chunk in sent.read():
            self._send(h11.Data(data=chunk))
            await self._writer.drain()
        self._send(h11.EndOfMessage())
        await self._writer.drain()

    async def _await_end(self) -> None:
        """Return when the command hangs up; what it sends meanwhile is its next request."""
        while data := await self._reader.read(_CHUNK):
            self._http.receive_data(data)
            if len(self._http.trailing_data[0]) > _MAX_HEAD:
                return

    async def _receive(self) -> object:
        while True:
            event = self._http.next_event()
            if event is not h11.NEED_DATA:
                return event
            if self._http.they_are_waiting_for_100_continue:
                self._send(h11.InformationalResponse(status_code=100, headers=[]))
            self._http.receive_data(await self._reader.read(_CHUNK))

    async def _receive_body(self, *, keep: bool) -> bytes | None:
        """Return the body of a request; None if it is too large. Without `keep` it is dropped."""
        body = bytearray()
        size = 0
        while True:
            async with asyncio.timeout(_CHUNK_WITHIN_S):
                event = await self._receive()
            match event:
                case h11.Data():
                    size += len(event.data)
                    if size > MAX_BODY:
                        return None
                    body += event.data if keep else b""
                case h11.EndOfMessage() | h11.PAUSED:
                    return bytes(body)
                case _:
                    raise ConnectionError("the body was cut off")

    async def _refuse(self, status: HTTPStatus, message: str) -> None:
        """Answer as an API server refuses, so that commands print the message."""
        reply: Mapping[str, str | int] = {
            "kind": "Status",
            "apiVersion": "v1",
            "status": "Failure",
            "reason": status.phrase.replace(" ", ""),
            "message": message,
            "code": int(status),
        }
        body = json.dumps(reply).encode()
        headers = [("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
        self._send(h11.Response(status_code=status, headers=headers))
        self._send(h11.Data(data=body))
        self._send(h11.EndOfMessage())
        await self._writer.drain()

    def _send(self, event: h11.Event) -> None:
        self._writer.write(self._http.send(event) or b"")
