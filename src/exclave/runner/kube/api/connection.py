"""How to reach one cluster: its address, TLS, and a credential that can renew itself."""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol


class Credential(Protocol):
    """What proves to a cluster who asks. Client certificates are part of the TLS context."""

    async def read_headers(self) -> Mapping[str, str]:
        """Return the headers of a request, with a token that is valid now."""
        ...

    async def renew(self) -> bool:
        """Forget the token because the cluster refused it; return False if there is no other."""
        ...


class NoCredential:
    """The credential of connections that need none, or have a client certificate."""

    async def read_headers(self) -> Mapping[str, str]:
        """Return no headers."""
        return {}

    async def renew(self) -> bool:
        """Return False: there is nothing to renew."""
        return False


@dataclass(frozen=True, slots=True)
class Connection:
    """A cluster that can be asked. `server` has no slash at its end."""

    server: str
    tls: ssl.SSLContext | None
    credential: Credential
    proxy: str | None = None
    tls_name: str | None = None
    """The name in the server's certificate, if it is not that of the address."""
