"""One HTTP call of the Control API: send, retry, parse the reply or raise the problem."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

import httpx
from pydantic import BaseModel, ValidationError

from exclave import __version__
from exclave.base.clock import Clock
from exclave.base.errors import InvalidInput, Problem
from exclave.base.ids import Ids
from exclave.client.problems import UnexpectedReply
from exclave.client.retry import RetryPolicy, is_passing, retry
from exclave.client.transport import Link, explain_failure, read_problem
from exclave.wire.model import Page

Item = TypeVar("Item")
Model = TypeVar("Model", bound=BaseModel)
Param = str | int | float | list[str] | None
Params = Mapping[str, Param]

QUICK = RetryPolicy(first_s=0.2, longest_s=2.0, give_up_s=4.0)
"""Short retries: a person may be waiting at a terminal, so an outage is reported soon."""

_TIMEOUT = httpx.Timeout(30.0, connect=5.0, pool=None)
_STREAM_TIMEOUT = httpx.Timeout(20.0, connect=5.0, pool=None)
"""The server sends a comment every few seconds; a longer silence means a dead connection."""
_UPLOAD_TIMEOUT = httpx.Timeout(300.0, connect=5.0, pool=None)
"""The server reads and processes the whole upload before it replies."""
_UPLOAD_CHUNK = 256 * 1024
_LIMITS = httpx.Limits(max_connections=None, max_keepalive_connections=20)
_BUSY = frozenset({429, 502, 503, 504})
"""Statuses that a proxy sends while the server is overloaded or restarting."""


class ControlHttp:
    """HTTP calls with one token. Every call can be retried: a POST carries an idempotency key."""

    def __init__(
        self,
        url: str,
        token: str,
        *,
        clock: Clock,
        ids: Ids,
        transport: httpx.AsyncBaseTransport | None = None,
        policy: RetryPolicy = QUICK,
    ) -> None:
        self.url = check_url(url)
        self.clock = clock
        self.ids = ids
        self._policy = policy
        self._http = httpx.AsyncClient(
            base_url=self.url,
            headers={
                "Authorization": f"Bearer {token}",
                "User-Agent": f"exclave-cli/{__version__}",
            },
            transport=transport,
            timeout=_TIMEOUT,
            limits=_LIMITS,
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def get(self, reply: type[Model], path: str, **params: Param) -> Model:
        """Send a GET and return the parsed reply."""
        return _read(reply, await self._send("GET", path, params=params))

    async def list_page(
        self, item: type[Item], path: str, cursor: str | None, limit: int, **filters: Param
    ) -> Page[Item]:
        """Return one page of a list, beginning at the cursor."""
        # For the type checker a variable is no argument of a generic class; pydantic takes it.
        page: type[Page[Item]] = Page[item]  # type: ignore[valid-type]
        return await self.get(page, path, cursor=cursor, limit=limit, **filters)

    async def post(self, reply: type[Model], path: str, body: BaseModel | None = None) -> Model:
        """Send a POST that takes effect once, however often it has to be sent."""
        return _read(reply, await self._send("POST", path, body=body, key=self.ids.new("idk")))

    async def put(self, reply: type[Model], path: str, body: BaseModel) -> Model:
        """Send a PUT and return the parsed reply."""
        return _read(reply, await self._send("PUT", path, body=body))

    async def put_without_reply(self, path: str) -> None:
        """Send a PUT whose reply has no body."""
        await self._send("PUT", path)

    async def upload(self, reply: type[Model], path: str, file: Path, **params: Param) -> Model:
        """PUT the bytes of a file; a retry sends all of them again."""

        async def send() -> httpx.Response:
            request = self._http.build_request(
                "PUT",
                path,
                params=_drop_none(params),
                content=_read_file(file),
                headers={"Content-Type": "application/octet-stream"},
                timeout=_UPLOAD_TIMEOUT,
            )
            return await self._send_once(request)

        response = await retry(send, self._policy, self.clock, self.ids.randomness)
        if not response.is_success:
            raise read_problem(response)
        return _read(reply, response)

    async def delete(self, path: str, **params: Param) -> None:
        """Send a DELETE whose reply has no body."""
        await self._send("DELETE", path, params=params)

    async def delete_with_reply(self, reply: type[Model], path: str, **params: Param) -> Model:
        """Send a DELETE and return the parsed reply."""
        return _read(reply, await self._send("DELETE", path, params=params))

    @asynccontextmanager
    async def stream(
        self, path: str, last_event_id: str, **params: str | float | None
    ) -> AsyncIterator[httpx.Response]:
        """Open an event stream; the caller handles a broken connection."""
        headers = {"Accept": "text/event-stream", "Cache-Control": "no-store"}
        if last_event_id:
            headers["Last-Event-ID"] = last_event_id
        try:
            async with self._http.stream(
                "GET", path, params=_drop_none(params), headers=headers, timeout=_STREAM_TIMEOUT
            ) as response:
                if response.status_code != httpx.codes.OK:
                    await response.aread()
                    raise read_problem(response)
                yield response
        except httpx.TransportError as error:
            raise explain_failure(Link(self.url), error) from error

    async def _send(
        self,
        method: str,
        path: str,
        *,
        params: Params | None = None,
        body: BaseModel | None = None,
        key: str = "",
    ) -> httpx.Response:
        headers = {"Idempotency-Key": key} if key else {}
        content = None
        if body is not None:
            content = body.model_dump_json()
            headers["Content-Type"] = "application/json"
        request = self._http.build_request(
            method, path, params=_drop_none(params or {}), content=content, headers=headers
        )
        send = partial(self._send_once, request)
        response = await retry(send, self._policy, self.clock, self.ids.randomness)
        if not response.is_success:
            raise read_problem(response)
        return response

    async def _send_once(self, request: httpx.Request) -> httpx.Response:
        """Send once. Raise only what is worth a retry; other errors are returned as responses."""
        try:
            response = await self._http.send(request)
        except httpx.TransportError as error:
            raise explain_failure(Link(self.url), error) from error
        if not response.is_success and is_outage(problem := read_problem(response)):
            raise problem
        return response


def check_url(url: str) -> str:
    """Return the URL without a trailing slash; raise `InvalidInput` if it is not HTTP(S)."""
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL:
        parsed = httpx.URL("")
    if parsed.scheme not in {"http", "https"} or not parsed.host:
        raise InvalidInput(f"`{url}` is not a URL", hint="Use https://host or http://host:port.")
    return url.rstrip("/")


def is_outage(problem: Problem) -> bool:
    """Return whether the same request may succeed later.

    A reply that is not from Exclave is no outage, unless a proxy reports that its server is down.
    """
    if isinstance(problem, UnexpectedReply):
        return problem.facts.get("status") in _BUSY
    return is_passing(problem)


def part(name: str) -> str:
    """Quote a name so that it is one segment of a path."""
    return quote(name, safe="")


async def _read_file(file: Path) -> AsyncIterator[bytes]:
    with file.open("rb") as opened:
        while chunk := opened.read(_UPLOAD_CHUNK):
            yield chunk


def _drop_none(params: Params) -> dict[str, str | int | float | list[str]]:
    return {name: value for name, value in params.items() if value is not None}


def _read(reply: type[Model], response: httpx.Response) -> Model:
    try:
        return reply.model_validate_json(response.content)
    except ValidationError as error:
        request = f"{response.request.method} {response.request.url.path}"
        raise UnexpectedReply(
            f"{request} returned a body that is not a valid `{reply.__name__}`"
        ) from error
