"""One call of the Control API: send, retry what may be repeated, read the answer or the problem."""

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

Model = TypeVar("Model", bound=BaseModel)
Param = str | int | float | list[str] | None
Params = Mapping[str, Param]

QUICK = RetryPolicy(first_s=0.2, longest_s=2.0, give_up_s=4.0)
"""Somebody waits at a terminal: bridge a hiccup, not an outage."""

_TIMEOUT = httpx.Timeout(30.0, connect=5.0, pool=None)
_STREAM_TIMEOUT = httpx.Timeout(20.0, connect=5.0, pool=None)
"""The server sends a comment every few seconds; a longer silence means that the line is dead."""
_UPLOAD_TIMEOUT = httpx.Timeout(300.0, connect=5.0, pool=None)
"""The server reads all of it, and works on it, before it answers."""
_UPLOAD_CHUNK = 256 * 1024
_LIMITS = httpx.Limits(max_connections=None, max_keepalive_connections=20)
_BUSY = frozenset({429, 502, 503, 504})
"""Answers by which a proxy says that the server may be back in a moment."""


class ControlCalls:
    """Sends requests with the token. Every call may be repeated: a POST carries its own key."""

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
        """Give the connections back."""
        await self._http.aclose()

    async def get(self, reply: type[Model], path: str, **params: Param) -> Model:
        """Read one thing."""
        return _read(reply, await self._send("GET", path, params=params))

    async def post(self, reply: type[Model], path: str, body: BaseModel | None = None) -> Model:
        """Do something exactly once, however often the request has to be sent."""
        return _read(reply, await self._send("POST", path, body=body, key=self.ids.new("idk")))

    async def put(self, reply: type[Model], path: str, body: BaseModel) -> Model:
        """Set something."""
        return _read(reply, await self._send("PUT", path, body=body))

    async def put_silent(self, path: str) -> None:
        """Set something that answers nothing."""
        await self._send("PUT", path)

    async def upload(self, reply: type[Model], path: str, file: Path, **params: Param) -> Model:
        """Put the bytes of a file; the server must bear that they are sent again."""

        async def send() -> httpx.Response:
            request = self._http.build_request(
                "PUT",
                path,
                params=_drop_none(params),
                content=_read_file(file),
                headers={"Content-Type": "application/octet-stream"},
                timeout=_UPLOAD_TIMEOUT,
            )
            return await self._try(request)

        response = await retry(send, self._policy, self.clock, self.ids.randomness)
        if not response.is_success:
            raise read_problem(response)
        return _read(reply, response)

    async def delete(self, path: str, **params: Param) -> None:
        """Take something away."""
        await self._send("DELETE", path, params=params)

    async def delete_told(self, reply: type[Model], path: str, **params: Param) -> Model:
        """Take something away, and read what went with it."""
        return _read(reply, await self._send("DELETE", path, params=params))

    @asynccontextmanager
    async def stream(
        self, path: str, last_event_id: str, **params: str | float | None
    ) -> AsyncIterator[httpx.Response]:
        """Open an event stream; the caller decides what a cut means."""
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
        send = partial(self._try, request)
        response = await retry(send, self._policy, self.clock, self.ids.randomness)
        if not response.is_success:
            raise read_problem(response)
        return response

    async def _try(self, request: httpx.Request) -> httpx.Response:
        """Send once; only what may pass is raised, for the policy to judge."""
        try:
            response = await self._http.send(request)
        except httpx.TransportError as error:
            raise explain_failure(Link(self.url), error) from error
        if not response.is_success and is_outage(problem := read_problem(response)):
            raise problem
        return response


def check_url(url: str) -> str:
    """Accept an address that a client can call."""
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL:
        parsed = httpx.URL("")
    if parsed.scheme not in {"http", "https"} or not parsed.host:
        raise InvalidInput(
            f"`{url}` is not an address", hint="Give it as https://host or http://host:port."
        )
    return url.rstrip("/")


def is_outage(problem: Problem) -> bool:
    """Tell whether the same request may succeed later; a stranger that answers is no outage."""
    if isinstance(problem, UnexpectedReply):
        return problem.facts.get("status") in _BUSY
    return is_passing(problem)


def part(name: str) -> str:
    """Make a name safe as one part of a path."""
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
        place = f"{response.request.method} {response.request.url.path}"
        raise UnexpectedReply(
            f"{place} was answered with something else than `{reply.__name__}`"
        ) from error
