"""Opt-in download of remote files over https: bounded in size and time, public hosts only.

The host is resolved once, every resolved address must be public, and the connection goes to
exactly that address. So a name that points to a private network, or is rebound, is refused.
"""

import contextlib
import http.client
import socket
import ssl
import urllib.parse
from typing import Final

from exclave.appconfig.reading.references import FetchFailed
from exclave.base.addresses import is_public
from exclave.base.clock import SystemClock

_LIMIT: Final = 4 * 1024 * 1024
_TIMEOUT_S: Final = 5.0
_MAX_REDIRECTS: Final = 3
_PIECE: Final = 64 * 1024


class HttpsFetcher:
    """Downloads text files over https."""

    def fetch(self, address: str) -> str:
        """Return the text at a URL; raise `FetchFailed`."""
        for _ in range(_MAX_REDIRECTS + 1):
            answer = _get(address)
            if isinstance(answer, bytes):
                try:
                    return answer.decode()
                except UnicodeDecodeError as error:
                    raise FetchFailed("the answer is not UTF-8 text") from error
            address = urllib.parse.urljoin(address, answer)
        raise FetchFailed(f"more than {_MAX_REDIRECTS} redirections")


def find_public_address(host: str, port: int) -> str:
    """Return a public address of a host; raise `FetchFailed` if it has any other."""
    try:
        resolved = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise FetchFailed(f"the host `{host}` is not known") from error
    addresses = [str(entry[4][0]) for entry in resolved]
    if not addresses or not all(is_public(address) for address in addresses):
        hint = "Only public addresses are fetched; keep the file in the app directory."
        raise FetchFailed(f"`{host}` is a private address", hint)
    return addresses[0]


class _Connection(http.client.HTTPSConnection):
    """A connection to a checked address, with TLS for the requested host name."""

    def __init__(self, host: str, port: int) -> None:
        super().__init__(host, port, timeout=_TIMEOUT_S)
        self._address = find_public_address(host, port)
        self._tls = ssl.create_default_context()

    def connect(self) -> None:
        """Connect to the checked address."""
        raw = socket.create_connection((self._address, self.port), _TIMEOUT_S)
        self.sock = self._tls.wrap_socket(raw, server_hostname=self.host)


def _read_body(answer: http.client.HTTPResponse) -> bytes:
    """Return the body up to the size limit; give up on a server that sends it too slowly."""
    clock = SystemClock()
    until = clock.monotonic() + _TIMEOUT_S
    body = b""
    while len(body) <= _LIMIT:
        piece = answer.read1(_PIECE)
        if not piece:
            break
        if clock.monotonic() > until:
            raise FetchFailed(f"it took longer than {_TIMEOUT_S:g} s")
        body += piece
    return body


def _get(address: str) -> bytes | str:
    """Return the body, or the URL of a redirect."""
    try:
        url = urllib.parse.urlsplit(address)
        host, port = url.hostname, url.port or 443
    except ValueError as error:
        raise FetchFailed(f"it is not an address: {error}") from error
    if url.scheme != "https" or not host:
        hint = "Only https is fetched; keep the file in the app directory."
        raise FetchFailed("it is not an https address", hint)
    target = urllib.parse.urlunsplit(("", "", url.path or "/", url.query, ""))
    try:
        with contextlib.closing(_Connection(host, port)) as connection:
            connection.request("GET", target, headers={"User-Agent": "exclave"})
            answer = connection.getresponse()
            body = _read_body(answer)
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise FetchFailed(f"{type(error).__name__}: {error}") from error
    if answer.status in {301, 302, 303, 307, 308}:
        return answer.headers.get("Location", "")
    if answer.status != http.HTTPStatus.OK:
        raise FetchFailed(f"the server answered {answer.status}")
    if len(body) > _LIMIT:
        raise FetchFailed(f"the file is larger than {_LIMIT} bytes")
    return body
