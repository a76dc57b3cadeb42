"""Probes of an app: a request or a connection from the runner, or a command in a pod."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

import httpx

from exclave.client.reach import AddressRefused, Reach
from exclave.client.transport import Link, build_tls, open_transport
from exclave.wire.kubernetes import HealthProbe

WITHIN_S: Final = 5.0
"""How long a request or a connection may take."""

_REACH: Final = Reach()
"""A vendor names the addresses, and the runner is a machine of the customer."""
RunInPod = Callable[[str, str, Sequence[str]], Awaitable[str]]
"""Runs a command in a pod, given by namespace and name; returns why it failed, if it did."""


async def run_probe(
    probe: HealthProbe,
    pod: tuple[str, str] | None,
    run_in_pod: RunInPod,
    reach: Reach = _REACH,
) -> str:
    """Run a probe; return why it does not pass, or an empty text."""
    match probe.type:
        case "http":
            return await _ask(probe.url, reach)
        case "tcp":
            return await _connect(probe.url, reach)
        case "exec":
            if pod is None:
                return "there is no ready pod to run it in"
            return await run_in_pod(*pod, probe.command)


async def _ask(url: str, reach: Reach) -> str:
    link = Link(url)
    transport = open_transport(link, build_tls(link), 1, reach=reach)
    try:
        async with (
            httpx.AsyncClient(transport=transport, trust_env=False, timeout=WITHIN_S) as http,
            asyncio.timeout(WITHIN_S),
            http.stream("GET", url) as reply,
        ):
            status = reply.status_code
    except TimeoutError:
        return f"GET {url}: no answer within {WITHIN_S:g} s"
    except AddressRefused as refused:
        return f"GET {url}: {refused.message}"
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, OSError) as error:
        return f"GET {url}: {error or type(error).__name__}"
    is_fine = HTTPStatus.OK <= status < HTTPStatus.BAD_REQUEST
    return "" if is_fine else f"GET {url} answers {status}"


async def _connect(url: str, reach: Reach) -> str:
    try:
        target = urlsplit(url if "//" in url else f"tcp://{url}")
        host, port = target.hostname, target.port
    except ValueError:
        host, port = None, None
    if not host or not port:
        return f"`{url}` names no host and port, such as `tcp://db:5432`"
    try:
        async with asyncio.timeout(WITHIN_S):
            await _open_and_close(await reach.find_addresses(host, port), port)
    except TimeoutError:
        return f"{host}:{port}: no connection within {WITHIN_S:g} s"
    except AddressRefused as refused:
        return f"{host}:{port}: {refused.message}"
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        return f"{host}:{port}: {reason or error}"
    return ""


async def _open_and_close(addresses: Sequence[str], port: int) -> None:
    """Connect to one of the addresses; raise the failure of the last one."""
    failure = OSError("it has no address")
    for address in addresses:
        try:
            _, writer = await asyncio.open_connection(address, port)
        except OSError as error:
            failure = error
        else:
            writer.close()
            return
    raise failure
