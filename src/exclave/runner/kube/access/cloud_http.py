"""Small requests to the metadata servers and token issuers of clouds."""

import asyncio
from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

import httpx

from exclave.base.json_values import JsonObject, parse_object
from exclave.runner.kube.api.errors import AccessRefused

_LIMIT_S: Final = 10.0
_CONNECT_S: Final = 2.0
_MOST_BYTES: Final = 256 << 10
_SHOWN: Final = 300


async def ask_cloud(
    method: str,
    url: str,
    *,
    what: str,
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
) -> str:
    """Return the text of a reply; `what` names the server in problems. No proxy, no redirects."""
    try:
        async with (
            asyncio.timeout(_LIMIT_S),
            httpx.AsyncClient(
                trust_env=False, timeout=httpx.Timeout(_LIMIT_S, connect=_CONNECT_S)
            ) as http,
            http.stream(method, url, headers=dict(headers or {}), content=body) as response,
        ):
            data = bytearray()
            async for chunk in response.aiter_bytes():
                data += chunk
                if len(data) > _MOST_BYTES:
                    raise AccessRefused(f"{what} sent a reply that is too long")
    except (httpx.HTTPError, TimeoutError, OSError) as error:
        message = f"{what} does not answer: {str(error) or type(error).__name__}"
        hint = "Check that the runner runs in this cloud and may reach it."
        raise AccessRefused(message, hint=hint) from error
    text = data.decode(errors="replace")
    if response.status_code != HTTPStatus.OK:
        raise AccessRefused(f"{what} answered {response.status_code}: {text.strip()[:_SHOWN]}")
    return text


async def ask_cloud_json(
    method: str,
    url: str,
    *,
    what: str,
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
) -> JsonObject:
    """Return the JSON object of a reply."""
    text = await ask_cloud(method, url, what=what, headers=headers, body=body)
    try:
        return parse_object(text, what)
    except ValueError as error:
        raise AccessRefused(f"{what} did not answer with JSON") from error
