"""Requests of the control plane to clouds: bounded, through the operator's proxy, no redirects."""

import asyncio
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import httpx

from exclave.control.attest.base import CloudUnreachable

_LIMIT_S: Final = 10.0
_CONNECT_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class Fetched:
    """A reply of a cloud, whatever its status."""

    status: int
    body: bytes


class Fetcher:
    """Asks clouds. What is sent and where is decided here, never by who wants to enrol."""

    def __init__(self, proxy: str = "", limit_s: float = _LIMIT_S) -> None:
        self._proxy = proxy
        self._limit_s = limit_s
        self._tls: ssl.SSLContext | None = None

    async def fetch(
        self,
        method: str,
        url: str,
        *,
        most_bytes: int,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
    ) -> Fetched:
        """Return a reply of at most `most_bytes`; raise `CloudUnreachable` if there is none."""
        try:
            async with (
                asyncio.timeout(self._limit_s),
                httpx.AsyncClient(
                    verify=self._get_tls(),
                    proxy=self._proxy or None,
                    trust_env=False,
                    follow_redirects=False,
                    timeout=httpx.Timeout(self._limit_s, connect=_CONNECT_S),
                ) as http,
                http.stream(method, url, headers=dict(headers or {}), content=body) as response,
            ):
                data = bytearray()
                async for chunk in response.aiter_bytes():
                    data += chunk
                    if len(data) > most_bytes:
                        raise CloudUnreachable(f"{url} sent more than {most_bytes} bytes")
        except (httpx.HTTPError, httpx.InvalidURL, TimeoutError, OSError) as error:
            cause = str(error) or type(error).__name__
            raise CloudUnreachable(f"{url} does not answer: {cause}") from error
        return Fetched(response.status_code, bytes(data))

    def _get_tls(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = httpx.create_ssl_context(trust_env=False)
        return self._tls
