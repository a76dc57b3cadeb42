"""The Runner API as the runner calls it, and its implementation over HTTP."""

from dataclasses import dataclass
from typing import Protocol

import httpx
from pydantic import BaseModel

from exclave.client.exchange import Model, ask, authorise, build_post, read_reply
from exclave.client.transport import Link, build_tls, open_client
from exclave.client.work import HttpWorkApi, WorkApi
from exclave.wire.runner import (
    AskNonce,
    AskToken,
    Enrol,
    Enrolled,
    LogReply,
    NonceReply,
    Poll,
    PollReply,
    Renew,
    RenewReply,
    Result,
    ResultReply,
    ServerKeys,
    Start,
    StartReply,
    TokenReply,
)


class RunnerApi(Protocol):
    """The calls a runner makes. Each ends within a deadline, with a reply or a `Problem`.

    `RemoteProblem` is a reply of the control plane; `Unreachable` and `UnexpectedReply` mean that
    it is unknown whether the request was carried out.
    """

    @property
    def work(self) -> WorkApi:
        """The calls made for running executions."""
        ...

    async def enrol(self, request: Enrol) -> Enrolled:
        """Exchange a one-time token for an identity."""
        ...

    async def ask_nonce(self, request: AskNonce) -> NonceReply:
        """Request a nonce to sign."""
        ...

    async def ask_token(self, request: AskToken) -> TokenReply:
        """Exchange a signed nonce for an access token."""
        ...

    async def get_keys(self) -> ServerKeys:
        """Return the chain of signing keys."""
        ...

    async def poll(self, token: str, request: Poll) -> PollReply:
        """Wait for offers and cancellations."""
        ...

    async def renew(self, token: str, request: Renew) -> RenewReply:
        """Renew the leases of executions."""
        ...

    async def start(self, token: str, execution_id: str, request: Start) -> StartReply:
        """Request permission to start an execution."""
        ...

    async def append_log(
        self, token: str, execution_id: str, *, offset: int, epoch: int, frame: bytes
    ) -> LogReply:
        """Append a zstd frame of log records at an offset of the uncompressed stream."""
        ...

    async def hand_in(self, token: str, execution_id: str, request: Result) -> ResultReply:
        """Report how an execution ended."""
        ...


@dataclass(frozen=True, slots=True)
class Deadlines:
    """Total seconds per call; a poll gets its own hold on top."""

    poll_extra_s: float = 10.0
    renew_s: float = 8.0
    log_s: float = 60.0
    call_s: float = 20.0


class HttpRunnerApi:
    """Each kind of traffic has its own connections: logs can never delay a renewal."""

    def __init__(
        self,
        link: Link,
        *,
        deadlines: Deadlines = Deadlines(),  # noqa: B008 - frozen
    ) -> None:
        self._link = link
        self._deadlines = deadlines
        tls = build_tls(link)
        self._polls = open_client(link, tls, connections=2)
        self._renewals = open_client(link, tls, connections=2)
        self._logs = open_client(link, tls, connections=8)
        self._calls = open_client(link, tls, connections=16)
        self._files = open_client(link, tls, connections=16)
        self._work = HttpWorkApi(link, self._files)

    @property
    def work(self) -> WorkApi:
        """The calls made for running executions."""
        return self._work

    async def close(self) -> None:
        """Close all connections."""
        for client in (self._polls, self._renewals, self._logs, self._calls, self._files):
            await client.aclose()

    async def enrol(self, request: Enrol) -> Enrolled:
        """Exchange a one-time token for an identity."""
        return await self._call(Enrolled, "/v1/enrol", request)

    async def ask_nonce(self, request: AskNonce) -> NonceReply:
        """Request a nonce to sign."""
        return await self._call(NonceReply, "/v1/token/nonce", request)

    async def ask_token(self, request: AskToken) -> TokenReply:
        """Exchange a signed nonce for an access token."""
        return await self._call(TokenReply, "/v1/token", request)

    async def get_keys(self) -> ServerKeys:
        """Return the chain of signing keys."""
        request = self._calls.build_request("GET", "/v1/keys")
        return await self._send(self._calls, ServerKeys, request, self._deadlines.call_s)

    async def poll(self, token: str, request: Poll) -> PollReply:
        """Wait for offers and cancellations."""
        ready = build_post(self._polls, "/v1/poll", request, token)
        within_s = request.max_hold_s + self._deadlines.poll_extra_s
        return await self._send(self._polls, PollReply, ready, within_s)

    async def renew(self, token: str, request: Renew) -> RenewReply:
        """Renew the leases of executions."""
        ready = build_post(self._renewals, "/v1/renew", request, token)
        return await self._send(self._renewals, RenewReply, ready, self._deadlines.renew_s)

    async def start(self, token: str, execution_id: str, request: Start) -> StartReply:
        """Request permission to start an execution."""
        path = f"/v1/executions/{execution_id}/start"
        return await self._call(StartReply, path, request, token)

    async def append_log(
        self, token: str, execution_id: str, *, offset: int, epoch: int, frame: bytes
    ) -> LogReply:
        """Append a zstd frame of log records at an offset of the uncompressed stream."""
        request = self._logs.build_request(
            "POST",
            f"/v1/executions/{execution_id}/log",
            params={"offset": offset, "epoch": epoch},
            content=frame,
            headers={**authorise(token), "Content-Type": "application/zstd"},
        )
        return await self._send(self._logs, LogReply, request, self._deadlines.log_s)

    async def hand_in(self, token: str, execution_id: str, request: Result) -> ResultReply:
        """Report how an execution ended."""
        path = f"/v1/executions/{execution_id}/result"
        return await self._call(ResultReply, path, request, token)

    async def _call(
        self, reply: type[Model], path: str, body: BaseModel, token: str | None = None
    ) -> Model:
        ready = build_post(self._calls, path, body, token)
        return await self._send(self._calls, reply, ready, self._deadlines.call_s)

    async def _send(
        self, client: httpx.AsyncClient, reply: type[Model], request: httpx.Request, within_s: float
    ) -> Model:
        return read_reply(reply, await ask(self._link, client, request, within_s))
