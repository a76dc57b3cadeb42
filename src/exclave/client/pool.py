"""A transport of httpx over a pool of httpcore, which it opens with a network of ours."""

import ssl
from collections.abc import AsyncIterable, AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Final

import httpcore
import httpx

from exclave.base.addresses import names_metadata
from exclave.client.network import Network
from exclave.client.reach import AddressRefused

_KEEP_S: Final = 60.0
_ERRORS: Final[Mapping[type[Exception], type[httpx.TransportError]]] = MappingProxyType(
    {
        httpcore.ConnectTimeout: httpx.ConnectTimeout,
        httpcore.ReadTimeout: httpx.ReadTimeout,
        httpcore.WriteTimeout: httpx.WriteTimeout,
        httpcore.PoolTimeout: httpx.PoolTimeout,
        httpcore.ConnectError: httpx.ConnectError,
        httpcore.ReadError: httpx.ReadError,
        httpcore.WriteError: httpx.WriteError,
        httpcore.ProxyError: httpx.ProxyError,
        httpcore.UnsupportedProtocol: httpx.UnsupportedProtocol,
        httpcore.LocalProtocolError: httpx.LocalProtocolError,
        httpcore.RemoteProtocolError: httpx.RemoteProtocolError,
    }
)
"""What httpx calls the errors of httpcore."""
SocketOptions = list[tuple[int, int, int]]


class PoolTransport(httpx.AsyncBaseTransport):
    """Sends requests over a pool: httpx has no option for the network that its pools use."""

    def __init__(self, pool: httpcore.AsyncConnectionPool, *, checks_names: bool = False) -> None:
        self._pool = pool
        self._checks_names = checks_names

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request; the body of the answer is read later."""
        if self._checks_names and names_metadata(request.url.host):
            raise AddressRefused(f"`{request.url.host}` is a metadata server: no proxy is asked")
        sent = httpcore.Request(
            method=request.method,
            url=httpcore.URL(
                scheme=request.url.raw_scheme,
                host=request.url.raw_host,
                port=request.url.port,
                target=request.url.raw_path,
            ),
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        with _translate_errors():
            answer = await self._pool.handle_async_request(sent)
        assert isinstance(answer.stream, AsyncIterable)  # noqa: S101 - of an asynchronous pool
        return httpx.Response(
            status_code=answer.status,
            headers=answer.headers,
            stream=_Body(answer),
            extensions=answer.extensions,
        )

    async def aclose(self) -> None:
        """Close the connections."""
        with _translate_errors():
            await self._pool.aclose()


class _Body(httpx.AsyncByteStream):
    """The body of an answer, which holds its connection until it is closed."""

    def __init__(self, answer: httpcore.Response) -> None:
        self._answer = answer

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _translate_errors():
            async for part in self._answer.aiter_stream():
                yield part

    async def aclose(self) -> None:
        with _translate_errors():
            await self._answer.aclose()


def open_pool(
    tls: ssl.SSLContext,
    connections: int,
    network: Network,
    *,
    proxy: str | None,
    options: SocketOptions,
    checks_names: bool = False,
) -> PoolTransport:
    """Return a transport with connections of its own, through the proxy if there is one."""
    if proxy is None:
        pool = httpcore.AsyncConnectionPool(
            ssl_context=tls,
            max_connections=connections,
            keepalive_expiry=_KEEP_S,
            socket_options=options,
            network_backend=network,
        )
    else:
        named = httpx.Proxy(proxy)
        pool = httpcore.AsyncHTTPProxy(
            proxy_url=str(named.url),
            proxy_auth=named.raw_auth,
            ssl_context=tls,
            max_connections=connections,
            keepalive_expiry=_KEEP_S,
            socket_options=options,
            network_backend=network,
        )
    return PoolTransport(pool, checks_names=checks_names)


@contextmanager
def _translate_errors() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        known = _ERRORS.get(type(error))
        if known is None:
            raise
        raise known(str(error)) from error
