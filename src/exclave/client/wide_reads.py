"""Connections that are read in larger pieces than httpx asks for, which large transfers need."""

import ssl
from collections.abc import Iterable
from typing import Any

import httpcore

_READ = 1 << 20
"""httpx reads 64 KiB at a time, each with a timer of its own: half of the time of a transfer."""


class WideReads(httpcore.AsyncNetworkBackend):
    """Opens connections as httpx does, and reads more of them at a time."""

    def __init__(self) -> None:
        self._inner = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the signature of httpcore
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect."""
        return _WideStream(
            await self._inner.connect_tcp(host, port, timeout, local_address, socket_options)
        )

    async def sleep(self, seconds: float) -> None:
        """Wait between attempts to connect."""
        await self._inner.sleep(seconds)


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
