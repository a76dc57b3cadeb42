"""The side of the proxy that talks to the cluster: the credential is added here."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final, Protocol, cast

import httpx

from exclave.client.transport import explain_cause, list_keepalive, name_cause
from exclave.runner.kube.access.proxy_rules import Headers, clean_reply, clean_request
from exclave.runner.kube.api.connection import Connection
from exclave.runner.kube.api.errors import ClusterUnreachable

_CHUNK: Final = 1 << 16
_CONNECTIONS: Final = 128
_CONNECT_S: Final = 10.0


class _Stream(Protocol):
    """The raw connection after an upgrade."""

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes: ...  # noqa: ASYNC109
    async def write(self, buffer: bytes, timeout: float | None = None) -> None: ...  # noqa: ASYNC109
    async def aclose(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Sent:
    """A request that was sent, and its reply as it arrives."""

    status: int
    headers: Headers
    response: httpx.Response

    async def read(self) -> AsyncIterator[bytes]:
        """Yield the body as it arrives, without a delay and undecoded."""
        try:
            async for chunk in self.response.aiter_raw():
                yield chunk
        except httpx.HTTPError as error:
            raise ConnectionError("the cluster ended the reply") from error

    async def pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, first: bytes
    ) -> None:
        """Pass bytes both ways after an upgrade, until one side ends."""
        stream = cast("_Stream", self.response.extensions["network_stream"])
        if first:
            await stream.write(first)
        tasks = {
            asyncio.ensure_future(_push(reader, stream)),
            asyncio.ensure_future(_pull(stream, writer)),
        }
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await stream.aclose()

    async def close(self) -> None:
        """Release the connection."""
        await self.response.aclose()


class Upstream:
    """A pool of connections to one cluster."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        name = connection.tls_name
        self._extensions = {} if name is None else {"sni_hostname": name}
        self._http = httpx.AsyncClient(
            base_url=connection.server,
            transport=httpx.AsyncHTTPTransport(
                verify=connection.tls or True,
                trust_env=False,
                proxy=None if connection.proxy is None else httpx.Proxy(connection.proxy),
                limits=httpx.Limits(max_connections=_CONNECTIONS, keepalive_expiry=60.0),
                socket_options=list_keepalive(),
            ),
            trust_env=False,
            timeout=httpx.Timeout(None, connect=_CONNECT_S),
        )

    async def send(
        self,
        method: str,
        target: str,
        headers: Iterable[tuple[bytes, bytes]],
        body: bytes,
        *,
        upgrade: bool,
    ) -> Sent:
        """Send a request; one that is refused for its token is sent again with a new token."""
        cleaned = clean_request(headers, upgrade=upgrade)
        response = await self._try(method, target, cleaned, body)
        is_unknown = response.status_code == HTTPStatus.UNAUTHORIZED
        if is_unknown and await self._connection.credential.renew():
            await response.aclose()
            response = await self._try(method, target, cleaned, body)
        switched = response.status_code == HTTPStatus.SWITCHING_PROTOCOLS
        replied = clean_reply(response.headers.raw, upgrade=switched)
        return Sent(response.status_code, replied, response)

    async def close(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    async def _try(self, method: str, target: str, headers: Headers, body: bytes) -> httpx.Response:
        credential = await self._connection.credential.read_headers()
        added = [(name.encode(), value.encode()) for name, value in credential.items()]
        request = self._http.build_request(
            method,
            f"{self._connection.server}{target}",
            headers=[*headers, *added],
            content=body or None,
            extensions=self._extensions,
        )
        try:
            return await self._http.send(request, stream=True)
        except httpx.HTTPError as error:
            cause = name_cause(error)
            message = f"no answer from the cluster ({cause}): {error}"
            raise ClusterUnreachable(message, hint=explain_cause(cause)) from error


async def _push(reader: asyncio.StreamReader, stream: _Stream) -> None:
    while data := await reader.read(_CHUNK):
        await stream.write(data)


async def _pull(stream: _Stream, writer: asyncio.StreamWriter) -> None:
    while data := await stream.read(_CHUNK):
        writer.write(data)
        await writer.drain()
