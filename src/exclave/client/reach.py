"""Which addresses of a host a connection may go to: decided after the name is resolved."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from exclave.base.addresses import is_metadata, is_public
from exclave.base.errors import Kind, Problem

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Resolves the addresses of a host."""


class AddressRefused(Problem):
    """A host has an address that no connection may go to; nothing was sent there."""

    kind: ClassVar = Kind.FORBIDDEN
    code: ClassVar = "address_refused"

    def __init__(self, message: str, *, is_private: bool = False) -> None:
        super().__init__(message)
        self.is_private = is_private
        """Whether it would be allowed if private addresses were."""


async def resolve_host(host: str, port: int) -> Sequence[str]:
    """Resolve a host with the system's resolver."""
    loop = asyncio.get_running_loop()
    resolved = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in resolved))


@dataclass(frozen=True, slots=True)
class Reach:
    """Where requests may go whose addresses a tenant names: never to metadata servers."""

    allow_private: bool = True
    resolve: Resolve = resolve_host

    async def find_addresses(self, host: str, port: int) -> Sequence[str]:
        """Return the addresses of a host; raise `AddressRefused` if a single one is refused.

        Whoever connects to these, and not to the name, is safe from a name that changes.
        """
        resolved = await self.resolve(host, port)
        for address in resolved:
            if is_metadata(address):
                message = f"the host `{host}` has the address {address}, where a machine asks its"
                raise AddressRefused(f"{message} cloud for credentials: nothing else may")
        private = [address for address in resolved if not is_public(address)]
        if private and not self.allow_private:
            listed = ", ".join(private)
            message = f"the host `{host}` has the private address {listed}"
            raise AddressRefused(message, is_private=True)
        return resolved
