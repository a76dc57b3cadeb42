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
from typing import Final, NamedTuple

import h11

from exclave.base.errors import Problem
from exclave.base.ids import Randomness
from exclave.runner.jobs.loopback import CommandConnection, LoopbackService, make_secret
from exclave.runner.jobs.workspace import Workspace
from exclave.runner.kube.access.proxy_rules import Mode, decide
from exclave.runner.kube.access.proxy_upstream import Sent, Upstream
from exclave.runner.kube.api.connection import Connection

MAX_BODY: Final = 8 << 20
"""Largest body of a request; an API server takes 3 MiB."""


class Change(NamedTuple):
    """A request that may change the cluster: before it is sent, and when it was answered."""

    method: str
    path: str
    status: int | None = None


NoteChange = Callable[[Change], None]
"""Writes a change down; called in a thread, and awaited before the change is sent."""


class ClusterProxy(LoopbackService):
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
        self._secret = make_secret(randomness)
        super().__init__(self._answer)
        self.refused = 0
        """How many changes were refused because this is a plan."""

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._mode = Mode.CLOSED
        await super().__aexit__(kind, error, trace)
        await self._upstream.close()

    async def close(self) -> None:
        """Refuse every further request with 401 and end those that are open, watches too."""
        self._mode = Mode.CLOSED
        await self._server.end_connections()

    @property
    def secrets(self) -> list[str]:
        """The secrets to mask."""
        return [self._secret]

    @property
    def url(self) -> str:
        """The address of the cluster for the commands of this execution."""
        return f"{self._server.address}/{self._secret}"

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

    async def _answer(self, connection: CommandConnection, request: h11.Request) -> bool:
        """Answer a request; return whether the connection can be used again."""
        target = self._cut_secret(request.target.decode())
        if target is None:
            # The body of a stranger is not read, so the connection cannot go on.
            message = "this proxy is for the commands of one job"
            await _refuse(connection, HTTPStatus.UNAUTHORIZED, message)
            return False
        connection.is_stranger = False
        verdict = decide(self._mode, request.method.decode(), target)
        self.refused += verdict.changes and not verdict.passes
        body = await connection.receive_body(MAX_BODY)
        if body is None:
            message = f"the body has more than {MAX_BODY >> 20} MiB"
            await _refuse(connection, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, message)
        elif not verdict.passes:
            await _refuse(connection, verdict.status, verdict.message)
        else:
            await self._forward(connection, request, target, body, changes=verdict.changes)
        return True

    def _cut_secret(self, target: str) -> str | None:
        """Return the target without the secret; None if the secret is wrong."""
        secret, slash, rest = target.removeprefix("/").partition("/")
        if not hmac.compare_digest(secret.encode(), self._secret.encode()) or not slash:
            return None
        return f"/{rest}"

    async def _forward(
        self,
        connection: CommandConnection,
        request: h11.Request,
        target: str,
        body: bytes,
        *,
        changes: bool,
    ) -> None:
        try:
            sent = await self._send(request, target, body, changes=changes)
        except Problem as problem:
            await _refuse(connection, HTTPStatus.BAD_GATEWAY, problem.message)
            return
        try:
            await _pass_on(connection, sent)
        finally:
            await sent.close()

    async def _send(self, request: h11.Request, target: str, body: bytes, *, changes: bool) -> Sent:
        """Send a request to the cluster; a change is noted before it is sent."""
        method = request.method.decode()
        upgrade = any(name == b"upgrade" for name, _ in request.headers)
        change = Change(method, target.partition("?")[0])
        if changes and self._note is not None:
            await asyncio.to_thread(self._note, change)
        sent = await self._upstream.send(method, target, request.headers, body, upgrade=upgrade)
        if changes and self._note is not None:
            await asyncio.to_thread(self._note, change._replace(status=sent.status))
        return sent


async def _pass_on(connection: CommandConnection, sent: Sent) -> None:
    """Pass the answer of the cluster on, until it ends or the command hangs up."""
    if sent.status == HTTPStatus.SWITCHING_PROTOCOLS:
        connection.send(h11.InformationalResponse(status_code=sent.status, headers=sent.headers))
        early = connection.http.trailing_data[0]
        await sent.pump(connection.reader, connection.writer, early)
        return
    connection.send(h11.Response(status_code=sent.status, headers=sent.headers))
    gone = asyncio.ensure_future(connection.await_end())
    passing = asyncio.ensure_future(_pass_body(connection, sent))
    try:
        await asyncio.wait((gone, passing), return_when=asyncio.FIRST_COMPLETED)
        if passing.done():
            passing.result()
    finally:
        for task in (gone, passing):
            task.cancel()
        await asyncio.gather(gone, passing, return_exceptions=True)


async def _pass_body(connection: CommandConnection, sent: Sent) -> None:
    async for chunk in sent.read():
        connection.send(h11.Data(data=chunk))
        await connection.writer.drain()
    connection.send(h11.EndOfMessage())
    await connection.writer.drain()


async def _refuse(connection: CommandConnection, status: HTTPStatus, message: str) -> None:
    """Answer as an API server refuses, so that commands print the message."""
    reply: Mapping[str, str | int] = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "reason": status.phrase.replace(" ", ""),
        "message": message,
        "code": int(status),
    }
    await connection.reply(status, json.dumps(reply).encode())
