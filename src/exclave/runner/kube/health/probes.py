"""Probes of an app: a request or a connection from the runner, or a command in a pod."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

import httpx

from exclave.wire.kubernetes import HealthProbe

WITHIN_S: Final = 5.0
"""How long a request or a connection may take."""

RunInPod = Callable[[str, str, Sequence[str]], Awaitable[str]]
"""Runs a command in a pod, given by namespace and name; returns why it failed, if it did."""


async def run_probe(probe: HealthProbe, pod: tuple[str, str] | None, run_in_pod: RunInPod) -> str:
    """Run a probe; return why it does not pass, or an empty text."""
    match probe.type:
        case "http":
            return await _ask(probe.url)
        case "tcp":
            return await _connect(probe.url)
        case "exec":
            if pod is None:
                return "there is no ready pod to run it in"
            return await run_in_pod(*pod, probe.command)


async def _ask(url: str) -> str:
    try:
        async with (
            httpx.AsyncClient(trust_env=False, timeout=WITHIN_S) as http,
            asyncio.timeout(WITHIN_S),
            http.stream("GET", url) as reply,
        ):
            status = reply.status_code
    except TimeoutError:
        return f"GET {url}: no answer within {WITHIN_S:g} s"
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, OSError) as error:
        return f"GET {url}: {error or type(error).__name__}"
    is_fine = HTTPStatus.OK <= status < HTTPStatus.BAD_REQUEST
    return "" if is_fine else f"GET {url} answers {status}"


async def _connect(url: str) -> str:
    try:
        target = urlsplit(url if "//" in url else f"tcp://{url}")
        host, port = target.hostname, target.port
    except ValueError:
        host, port = None, None
    if not host or not port:
        return f"`{url}` names no host and port, such as `tcp://db:5432`"
    try:
        async with asyncio.timeout(WITHIN_S):
            _, writer = await asyncio.open_connection(host, port)
        writer.close()
    except TimeoutError:
        return f"{host}:{port}: no connection within {WITHIN_S:g} s"
    except OSError as error:
        return f"{host}:{port}: {error.strerror or error}"
    return ""
