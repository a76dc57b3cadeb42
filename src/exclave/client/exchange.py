"""One request and its reply: limited in time and size, failures raised as problems."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Self, TypeVar

import httpcore
import httpx
from pydantic import BaseModel, ValidationError

from exclave.client.problems import TOO_LARGE, UnexpectedReply
from exclave.client.transport import Link, explain_failure, read_problem
from exclave.wire.states import MAX_FILE

Model = TypeVar("Model", bound=BaseModel)

MAX_REPLY = MAX_FILE
"""Most bytes of one reply that are kept in memory."""
_MAX_PROBLEM = 1 << 20
_LARGE = 512 * 1024
_REFUSED_WITHIN_S = 5.0


async def ask(
    link: Link, client: httpx.AsyncClient, request: httpx.Request, within_s: float
) -> httpx.Response:
    """Send a request and return its response; raise an error reply as its problem."""
    try:
        async with asyncio.timeout(within_s):
            response = await _receive(client, request)
    except (httpx.HTTPError, OSError) as error:
        if isinstance(error, httpx.NetworkError | httpx.RemoteProtocolError):
            await _raise_if_too_large(client, request)
        raise explain_failure(link, error) from error
    if not response.is_success:
        raise read_problem(response)
    return response


async def download(
    link: Link,
    client: httpx.AsyncClient,
    request: httpx.Request,
    target: Path,
    *,
    within_s: float,
    most: int,
) -> None:
    """Stream a response body to a file; raise above `most` bytes."""
    try:
        async with asyncio.timeout(within_s):
            await _store(client, request, target, most)
    except (httpx.HTTPError, TimeoutError) as error:
        raise explain_failure(link, error) from error


def read_reply(reply: type[Model], response: httpx.Response) -> Model:
    """Return a response parsed as its model."""
    try:
        return reply.model_validate_json(response.content)
    except ValidationError as error:
        path = response.request.url.path
        message = f"{path} answered something else than `{reply.__name__}`"
        raise UnexpectedReply(message, status=response.status_code) from error


def authorise(token: str | None) -> Mapping[str, str]:
    """Return the authorization header."""
    return {} if token is None else {"Authorization": f"Bearer {token}"}


def build_post(
    client: httpx.AsyncClient, path: str, body: BaseModel, token: str | None
) -> httpx.Request:
    """Build a request with a JSON body."""
    headers = {"Content-Type": "application/json", **authorise(token)}
    return client.build_request("POST", path, content=body.model_dump_json(), headers=headers)


async def _raise_if_too_large(client: httpx.AsyncClient, request: httpx.Request) -> None:
    """Raise if a large body broke the connection: a refusal during the upload is often lost.

    The same request is sent once more, without its body. A proxy that limits bodies refuses
    it because of its length; a server that would accept it waits for the body, and gets nothing.
    """
    announced = request.headers.get("Content-Length", "")
    if not announced.isdecimal() or int(announced) < _LARGE:
        return
    asked = client.build_request(
        request.method, request.url, headers=request.headers, content=_NoBody()
    )
    try:
        async with asyncio.timeout(_REFUSED_WITHIN_S):
            response = await _receive(client, asked)
    except (httpx.HTTPError, OSError, UnexpectedReply):
        return
    if response.status_code == TOO_LARGE:
        raise read_problem(response)


class _NoBody:
    """A body that is announced but never sent.

    The transport treats the error as a peer that stopped reading, and reads the response.
    """

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        raise httpcore.WriteError


async def _receive(client: httpx.AsyncClient, request: httpx.Request) -> httpx.Response:
    """Return the response with its body, limited in size."""
    response = await client.send(request, stream=True)
    try:
        body = await _read(response, MAX_REPLY)
    finally:
        await response.aclose()
    return _rebuild(response, request, body)


async def _store(
    client: httpx.AsyncClient, request: httpx.Request, target: Path, most: int
) -> None:
    response = await client.send(request, stream=True)
    try:
        if not response.is_success:
            body = await _read(response, _MAX_PROBLEM)
            raise read_problem(_rebuild(response, request, body))
        size = 0
        with target.open("wb") as out:
            async for chunk in response.aiter_bytes():
                size += len(chunk)
                if size > most:
                    message = f"{request.url.path} answered more than {most} bytes"
                    raise UnexpectedReply(message, status=response.status_code)
                out.write(chunk)
    finally:
        await response.aclose()


async def _read(response: httpx.Response, most: int) -> bytes:
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > most:
            message = f"{response.request.url.path} answered more than {most} bytes"
            raise UnexpectedReply(message, status=response.status_code)
    return bytes(body)


def _rebuild(response: httpx.Response, request: httpx.Request, body: bytes) -> httpx.Response:
    headers = {
        name: value
        for name, value in response.headers.items()
        if name not in {"content-encoding", "content-length", "transfer-encoding"}
    }
    return httpx.Response(response.status_code, headers=headers, content=body, request=request)
