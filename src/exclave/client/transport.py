"""The connection of a client: URL, proxy, certificates, headers, and the cause of a failure."""

import socket
import ssl
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import httpx

from exclave import __version__
from exclave.base.errors import InvalidInput
from exclave.client.network import Network
from exclave.client.pool import PoolTransport, open_pool
from exclave.client.problems import (
    TOO_LARGE,
    ProxyTooLarge,
    RemoteProblem,
    UnexpectedReply,
    Unreachable,
)
from exclave.client.reach import Reach
from exclave.wire.model import ProblemReply
from exclave.wire.runner import PROTOCOL

_KEEPALIVE = (("TCP_KEEPIDLE", 10), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3))
PROTOCOL_HEADER = "Exclave-Protocol"

_HINTS = {
    "dns": "The name does not resolve: check the address and this machine's DNS.",
    "refused": "Nothing listens there: check the address and port, and that the server runs.",
    "tls": "The certificate is not trusted: check the CA bundle and this machine's clock.",
    "proxy": "The proxy did not let the request through: check its address and its rules.",
    "timeout": "No answer in time: check firewalls and proxies on the way.",
    "network": "The connection broke: check the network, firewalls and proxies on the way.",
}


@dataclass(frozen=True, slots=True)
class Link:
    """URL, proxy and CA bundle of a server; the only source of proxy and CA settings."""

    url: str
    proxy: str | None = None
    ca_bundle: Path | None = None
    user_agent: str = field(default=f"exclave-runner/{__version__}")


def open_client(
    link: Link, tls: ssl.SSLContext, *, connections: int, connect_s: float = 10.0
) -> httpx.AsyncClient:
    """Return a client with its own pool and no read timeout: callers set total deadlines."""
    try:
        return httpx.AsyncClient(
            base_url=link.url.rstrip("/"),
            transport=open_transport(link, tls, connections),
            trust_env=False,
            timeout=httpx.Timeout(None, connect=connect_s),
            headers={"User-Agent": link.user_agent, PROTOCOL_HEADER: PROTOCOL},
        )
    except (httpx.InvalidURL, ValueError) as error:
        message = f"`{link.proxy or link.url}` is not an address that can be used: {error}"
        raise InvalidInput(message, hint="Give addresses as https://host:port.") from error


def open_transport(
    link: Link, tls: ssl.SSLContext, connections: int, *, reach: Reach | None = None
) -> PoolTransport:
    """Return the transport of one client, through the proxy if there is one.

    With a reach, no request gets to an address that it refuses, after redirects neither. Behind a
    proxy, which resolves names itself, that holds for metadata servers that a URL names.
    """
    network = Network(None if link.proxy else reach)
    return open_pool(
        tls,
        connections,
        network,
        proxy=link.proxy,
        options=list_keepalive(),
        checks_names=link.proxy is not None and reach is not None,
    )


def list_keepalive() -> list[tuple[int, int, int]]:
    """Return TCP keep-alive options, so that a dead peer is noticed during a long poll."""
    options = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
    for name, value in _KEEPALIVE:
        if hasattr(socket, name):
            options.append((socket.IPPROTO_TCP, getattr(socket, name), value))
    return options


def build_tls(link: Link) -> ssl.SSLContext:
    """Return a TLS context that trusts the public roots and the customer's CA bundle.

    Clients share it: reading the roots takes 17 ms. A bundle that was replaced is read again.
    """
    if link.ca_bundle is None:
        return _read_roots(None, 0)
    try:
        return _read_roots(link.ca_bundle, link.ca_bundle.stat().st_mtime_ns)
    except (OSError, ssl.SSLError) as error:
        message = f"the CA bundle `{link.ca_bundle}` cannot be read: {error}"
        raise InvalidInput(
            message, hint="Name a file with PEM certificates that this user may read."
        ) from error


@lru_cache(maxsize=4)
def _read_roots(ca_bundle: Path | None, _changed_at: int) -> ssl.SSLContext:
    tls = httpx.create_ssl_context(trust_env=False)
    tls.minimum_version = ssl.TLSVersion.TLSv1_2
    if ca_bundle is not None:
        tls.load_verify_locations(cafile=ca_bundle)
    return tls


def read_problem(response: httpx.Response) -> RemoteProblem | UnexpectedReply:
    """Return the problem of an error response; `UnexpectedReply` if it is not ours."""
    try:
        problem = ProblemReply.model_validate_json(response.content)
    except ValueError:
        if response.status_code == TOO_LARGE:
            return _explain_limit(response.request)
        return UnexpectedReply(
            f"{response.request.method} {response.request.url.path} was answered"
            f" {response.status_code}, but not by an Exclave server",
            hint=UnexpectedReply.hint,
            status=response.status_code,
            **_read_pause(response),
        )
    facts = {**(problem.model_extra or {}), **_read_pause(response)}
    return RemoteProblem(
        response.status_code, problem.code, problem.detail, hint=problem.hint, facts=facts
    )


def _explain_limit(request: httpx.Request) -> ProxyTooLarge:
    announced = request.headers.get("Content-Length", "")
    size = int(announced) if announced.isdecimal() else 0
    return ProxyTooLarge(f"{request.method} {request.url.path}", size)


def explain_failure(link: Link, error: Exception) -> Unreachable:
    """Return the problem of a transport error, with the hop that failed."""
    cause = name_cause(error)
    detail = str(error) or type(error).__name__
    return Unreachable(
        f"cannot reach {link.url} ({cause}): {detail}", hint=explain_cause(cause), cause=cause
    )


def explain_cause(cause: str) -> str:
    """Return a hint for a transport error."""
    return _HINTS.get(cause, _HINTS["network"])


def name_cause(error: BaseException) -> str:
    """Return dns, refused, tls, proxy, timeout or network, from the whole chain of causes."""
    if isinstance(error, httpx.ProxyError):
        return "proxy"
    chain = _list_causes(error)
    if any(isinstance(cause, socket.gaierror) for cause in chain):
        return "dns"
    if any(isinstance(cause, ssl.SSLError) for cause in chain):
        return "tls"
    if any(isinstance(cause, ConnectionRefusedError) for cause in chain):
        return "refused"
    if any(isinstance(cause, httpx.TimeoutException | TimeoutError) for cause in chain):
        return "timeout"
    return "network"


def _list_causes(error: BaseException) -> list[BaseException]:
    errors: list[BaseException] = []
    todo: list[BaseException] = [error]
    while todo:
        candidate = todo.pop()
        if any(candidate is known for known in errors):
            continue
        errors.append(candidate)
        if isinstance(candidate, BaseExceptionGroup):
            todo.extend(candidate.exceptions)
        todo.extend(
            cause for cause in (candidate.__cause__, candidate.__context__) if cause is not None
        )
    return errors


def _read_pause(response: httpx.Response) -> dict[str, float]:
    asked = response.headers.get("Retry-After", "")
    return {"retry_after_s": float(asked)} if asked.isdecimal() else {}
