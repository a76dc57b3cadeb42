"""Small requests to the metadata servers and APIs of clouds, bounded in time and size."""

import asyncio
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import ClassVar, Final

import httpx

from exclave.base.errors import Kind, Problem
from exclave.base.json_values import JsonObject, parse_object

_MOST_BYTES: Final = 256 << 10
_SHOWN: Final = 300
_ANSWERS: Final = frozenset({HTTPStatus.OK, HTTPStatus.NO_CONTENT})


@dataclass(frozen=True, slots=True)
class Limits:
    """How long a request may take, in seconds: all of it, and its connection."""

    whole_s: float = 10.0
    connect_s: float = 2.0


@dataclass(frozen=True, slots=True)
class Route:
    """The way to an API of a cloud; metadata servers are always reached directly."""

    proxy: str | None = None
    ca_bundle: Path | None = None

    def make_tls(self) -> ssl.SSLContext:
        """Return the settings of TLS, with the customer's own certificates."""
        tls = ssl.create_default_context()
        if self.ca_bundle is not None:
            tls.load_verify_locations(cafile=self.ca_bundle)
        return tls


class CloudRefused(Problem):
    """A server of the cloud does not answer, refuses, or answers what it should not.

    `status` is that of its reply, or 0 if there was none.
    """

    kind: ClassVar = Kind.UNAVAILABLE
    code: ClassVar = "cloud_refused"
    hint: ClassVar = ""

    def __init__(self, message: str, *, hint: str | None = None, status: int = 0) -> None:
        super().__init__(message, hint=hint)
        self.status = status


async def ask_cloud(
    method: str,
    url: str,
    *,
    what: str,
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
    limits: Limits | None = None,
    route: Route | None = None,
) -> str:
    """Return the text of a reply; `what` names the server in problems. No redirects.

    Without a route there is no proxy.
    """
    limits = limits or Limits()
    try:
        async with (
            asyncio.timeout(limits.whole_s),
            httpx.AsyncClient(
                trust_env=False,
                proxy=None if route is None else route.proxy,
                verify=True if route is None else route.make_tls(),
                timeout=httpx.Timeout(limits.whole_s, connect=limits.connect_s),
            ) as http,
            http.stream(method, url, headers=dict(headers or {}), content=body) as response,
        ):
            data = bytearray()
            async for chunk in response.aiter_bytes():
                data += chunk
                if len(data) > _MOST_BYTES:
                    raise CloudRefused(f"{what} sent a reply that is too long")
    except (httpx.HTTPError, TimeoutError, OSError) as error:
        message = f"{what} does not answer: {str(error) or type(error).__name__}"
        hint = "Check that the runner runs in this cloud and may reach it."
        raise CloudRefused(message, hint=hint) from error
    text = data.decode(errors="replace")
    if response.status_code not in _ANSWERS:
        message = f"{what} answered {response.status_code}: {text.strip()[:_SHOWN]}"
        raise CloudRefused(message, status=response.status_code)
    return text


async def ask_cloud_json(
    method: str,
    url: str,
    *,
    what: str,
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
    limits: Limits | None = None,
    route: Route | None = None,
) -> JsonObject:
    """Return the JSON object of a reply."""
    text = await ask_cloud(
        method, url, what=what, headers=headers, body=body, limits=limits, route=route
    )
    try:
        return parse_object(text, what)
    except ValueError as error:
        raise CloudRefused(f"{what} did not answer with JSON") from error


def read_object(text: str, what: str) -> JsonObject:
    """Return a JSON object that a server handed out; `what` names it in problems."""
    try:
        return parse_object(text, what)
    except ValueError as error:
        raise CloudRefused(str(error)) from error
