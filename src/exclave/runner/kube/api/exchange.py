"""One request to an API server: repeated where that is safe, its reply limited in size."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from types import TracebackType
from typing import Final, Self

import httpx

from exclave import __version__
from exclave.base.clock import Clock
from exclave.base.errors import Problem
from exclave.base.ids import Randomness
from exclave.base.json_values import JsonObject, parse_object
from exclave.client.retry import RetryPolicy
from exclave.client.transport import explain_cause, list_keepalive, name_cause
from exclave.runner.kube.api.connection import Connection
from exclave.runner.kube.api.errors import (
    ApiRefused,
    ApiStatus,
    ClusterUnreachable,
    ReplyTooLarge,
    is_passing,
    read_status,
)

PATIENCE: Final = RetryPolicy(first_s=0.2, longest_s=5.0, give_up_s=30.0)
MAX_REPLY: Final = 64 << 20
_MAX_ERROR: Final = 256 << 10
_CONNECTIONS: Final = 32
_CONNECT_S: Final = 10.0
_REPLY_S: Final = 60.0
_PARSED_HERE: Final = 256 << 10
"""Larger replies are parsed in a thread, so that the event loop is not blocked."""
_NEVER_SENT: Final = (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError)


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """A request. A `repeatable` one has the same effect when it is sent twice."""

    method: str
    path: str
    params: Mapping[str, str] = field(default_factory=dict)
    body: JsonObject | None = None
    content_type: str = "application/json"
    accept: str = "application/json"
    repeatable: bool = True
    max_reply: int = MAX_REPLY
    timeout_s: float = _REPLY_S

    @property
    def label(self) -> str:
        """The request for people."""
        return f"{self.method} {self.path}"


class Exchange:
    """Sends requests to one cluster. Open while the block lasts."""

    def __init__(
        self,
        connection: Connection,
        clock: Clock,
        randomness: Randomness,
        patience: RetryPolicy = PATIENCE,
    ) -> None:
        self._connection = connection
        self._extensions = (
            {} if connection.tls_name is None else {"sni_hostname": connection.tls_name}
        )
        self._clock = clock
        self._randomness = randomness
        self.patience = patience
        self._http = httpx.AsyncClient(
            base_url=connection.server,
            transport=httpx.AsyncHTTPTransport(
                verify=connection.tls or True,
                trust_env=False,
                proxy=connection.proxy and httpx.Proxy(connection.proxy),
                limits=httpx.Limits(max_connections=_CONNECTIONS, keepalive_expiry=60.0),
                socket_options=list_keepalive(),
            ),
            trust_env=False,
            timeout=httpx.Timeout(None, connect=_CONNECT_S),
            headers={"User-Agent": f"exclave-runner/{__version__}"},
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._http.aclose()

    async def call(self, request: ApiRequest) -> JsonObject:
        """Return the object that a request is answered with."""
        data = await self.fetch(request)
        try:
            if len(data) > _PARSED_HERE:
                return await asyncio.to_thread(parse_object, data, "the reply")
            return parse_object(data, "the reply")
        except ValueError as error:
            message = f"{request.label}: what answers at {self._connection.server} is no API server"
            raise ClusterUnreachable(message) from error

    async def fetch(self, request: ApiRequest) -> bytes:
        """Return the body of a reply, after as many tries as the rules allow."""
        began = self._clock.monotonic()
        attempt = 0
        renewed = False
        while True:
            try:
                return await self._try(request)
            except ApiRefused as refused:
                unknown = refused.status.code == HTTPStatus.UNAUTHORIZED
                if unknown and not renewed and await self._connection.credential.renew():
                    renewed = True
                    continue
                if not _may_repeat(request, refused.status):
                    raise
                problem: Problem = refused
            except ClusterUnreachable as failure:
                if not failure.facts.get("repeat"):
                    raise
                problem = failure
            pause = self.choose_pause(attempt, problem)
            if self.patience.give_up_s is not None and (
                self._clock.monotonic() + pause - began > self.patience.give_up_s
            ):
                raise problem
            await self._clock.sleep(pause)
            attempt += 1

    def choose_pause(self, attempt: int, problem: Problem) -> float:
        """Return how long to wait before another try; at least as long as the server asked for."""
        pause = self.patience.choose_delay(self._randomness, attempt, problem)
        asked = problem.status.retry_after_s if isinstance(problem, ApiRefused) else None
        return max(pause, asked or 0.0)

    @asynccontextmanager
    async def stream(
        self, request: ApiRequest, *, silence_s: float
    ) -> AsyncIterator[httpx.Response]:
        """Open a reply that goes on, such as a watch; nothing is repeated here."""
        timeout = httpx.Timeout(_REPLY_S, connect=_CONNECT_S, read=silence_s, pool=None)
        try:
            async with self._http.stream(
                request.method,
                request.path,
                params=dict(request.params),
                headers=await self._write_headers(request),
                timeout=timeout,
                extensions=self._extensions,
            ) as response:
                await self._check(request, response)
                yield response
        except (httpx.HTTPError, OSError) as error:
            raise self._explain(request, error) from error

    async def read_time(self) -> datetime:
        """Return the time of the server, from the header of a reply."""
        request = ApiRequest("GET", "/version")
        async with self.stream(request, silence_s=_REPLY_S) as reply:
            date = reply.headers.get("date", "")
        try:
            return parsedate_to_datetime(date)
        except ValueError as error:
            message = f"{self._connection.server} does not say what time it is"
            raise ClusterUnreachable(message) from error

    async def renew(self) -> bool:
        """Get another credential; return False if there is none."""
        return await self._connection.credential.renew()

    async def pause(self, seconds: float) -> None:
        """Sleep."""
        await self._clock.sleep(seconds)

    async def _try(self, request: ApiRequest) -> bytes:
        try:
            async with (
                asyncio.timeout(request.timeout_s),
                self._http.stream(
                    request.method,
                    request.path,
                    params=dict(request.params),
                    content=None if request.body is None else json.dumps(request.body).encode(),
                    headers=await self._write_headers(request),
                    extensions=self._extensions,
                ) as response,
            ):
                await self._check(request, response)
                return await _read(response, request.max_reply, request.label)
        except (httpx.HTTPError, OSError, TimeoutError) as error:
            raise self._explain(request, error) from error

    async def _write_headers(self, request: ApiRequest) -> dict[str, str]:
        headers = {"Accept": request.accept, **await self._connection.credential.read_headers()}
        if request.body is not None:
            headers["Content-Type"] = request.content_type
        return headers

    async def _check(self, request: ApiRequest, response: httpx.Response) -> None:
        if response.status_code < HTTPStatus.BAD_REQUEST:
            return
        body = await _read_start(response, _MAX_ERROR)
        status = read_status(response.status_code, body, response.headers.get("Retry-After", ""))
        raise ApiRefused(status, request.label)

    def _explain(self, request: ApiRequest, error: Exception) -> ClusterUnreachable:
        cause = name_cause(error)
        was_sent = not isinstance(error, _NEVER_SENT)
        repeat = cause != "tls" and (request.repeatable or not was_sent)
        detail = str(error) or type(error).__name__
        message = f"{request.label}: no answer from {self._connection.server} ({cause}): {detail}"
        return ClusterUnreachable(message, hint=explain_cause(cause), cause=cause, repeat=repeat)


def _may_repeat(request: ApiRequest, status: ApiStatus) -> bool:
    """Return whether to send a refused request again.

    429 means that nothing was done. 503 may come from a proxy after the server had done it, so a
    request that is not repeatable is sent again only if the server asks for it by Retry-After.
    """
    if status.code == HTTPStatus.TOO_MANY_REQUESTS:
        return True
    if status.code == HTTPStatus.SERVICE_UNAVAILABLE and status.retry_after_s is not None:
        return True
    return request.repeatable and is_passing(status)


async def _read(response: httpx.Response, most: int, label: str) -> bytes:
    body = await _read_start(response, most + 1)
    if len(body) > most:
        raise ReplyTooLarge(f"{label}: the reply is larger than {most >> 20} MiB")
    return body


async def _read_start(response: httpx.Response, most: int) -> bytes:
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) >= most:
            break
    return bytes(body[:most])
