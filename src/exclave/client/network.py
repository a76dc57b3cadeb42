"""Connections that are read in large pieces, and that go only to addresses that are allowed."""

import asyncio
import ssl
from collections.abc import Iterable
from typing import Any

import httpcore

from exclave.client.reach import Reach

_READ = 1 << 20
"""httpcore reads 64 KiB at a time, each with a timer of its own: half of the time of a transfer."""


class Network(httpcore.AsyncNetworkBackend):
    """Opens connections; with a reach, the name is resolved here and its addresses are checked."""

    def __init__(self, reach: Reach | None = None) -> None:
        self._inner = httpcore.AnyIOBackend()
        self._reach = reach

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the signature of httpcore
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect to the first address that answers."""
        options = list(socket_options or ())
        failure: Exception = httpcore.ConnectError(f"the host `{host}` has no address")
        for address in await self._list_addresses(host, port, timeout):
            try:
                return _WideStream(
                    await self._inner.connect_tcp(address, port, timeout, local_address, options)
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        raise failure

    async def sleep(self, seconds: float) -> None:
        """Wait between attempts to connect."""
        await self._inner.sleep(seconds)

    async def _list_addresses(
        self,
        host: str,
        port: int,
        timeout: float | None,  # noqa: ASYNC109 - as above
    ) -> Iterable[str]:
        if self._reach is None:
            return (host,)
        try:
            async with asyncio.timeout(timeout):
                return await self._reach.find_addresses(host, port)
        except TimeoutError as error:
            raise httpcore.ConnectTimeout(f"`{host}` was not resolved in time") from error
        except (OSError, UnicodeError) as error:
            raise httpcore.ConnectError(str(error)) from error


class _WideStream(httpcore.AsyncNetworkStream):
    def __init__(self, inner: httpcore.AsyncNetworkStream) -> None:
        self._inner = inner

    async def read(
        self,
        max_bytes: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the signature of httpcore
    ) -> bytes:
        return await self._inner.read(max(max_bytes, _READ), timeout)

    async def write(
        self,
        buffer: bytes,
        timeout: float | None = None,  # noqa: ASYNC109 - the signature of httpcore
    ) -> None:
        await self._inner.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - the signature of httpcore
    ) -> httpcore.AsyncNetworkStream:
        return _WideStream(await self._inner.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)
