"""Refuses private addresses, so that an app cannot make a build runner probe its network."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence

from exclave.base.addresses import is_public
from exclave.runner.git.urls import Address
from exclave.runner.outcomes import WorkFailed
from exclave.wire.jobs import Reason

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Resolve the addresses of a host."""


async def resolve_host(host: str, port: int) -> Sequence[str]:
    """Resolve a host with the system's resolver."""
    loop = asyncio.get_running_loop()
    resolved = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in resolved))


async def choose_public_ip(address: Address, resolve: Resolve) -> str:
    """Resolve the host once and return one address to use; a private one is refused.

    git is told to use this address, so that a later change of the name has no effect.
    """
    try:
        resolved = await resolve(address.host, address.port)
    except (OSError, UnicodeError) as error:
        message = f"the host `{address.host}` was not found: check the name, and the runner's DNS"
        raise WorkFailed(Reason.NETWORK, message) from error
    private = [ip for ip in resolved if not is_public(ip)]
    if private or not resolved:
        message = (
            f"the host `{address.host}` has the private address {', '.join(private)}, and apps may"
            " not fetch from those: set EXCLAVE_GIT_ALLOW_PRIVATE=true on the build runner, or"
            " write a rewrite rule for it"
        )
        raise WorkFailed(Reason.SOURCE_INVALID, message)
    return next((ip for ip in resolved if ":" not in ip), resolved[0])
