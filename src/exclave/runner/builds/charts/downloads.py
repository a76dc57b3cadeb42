"""Downloads for charts: from public addresses only, with the credentials of the build runner."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn
from urllib.parse import urljoin, urlsplit

import httpx

from exclave.base.errors import Problem
from exclave.client.oci.auth import Login
from exclave.client.reach import AddressRefused, Reach, Resolve, resolve_host
from exclave.client.transport import Link, build_tls, explain_failure, open_transport
from exclave.runner.git.private_networks import check_literal, choose_ip, explain_refusal
from exclave.runner.git.urls import Address
from exclave.runner.jobs.context import JobContext
from exclave.runner.outcomes import WorkFailed
from exclave.runner.secrets.source_credentials import Credential, SourceCredentials, list_secrets
from exclave.wire.jobs import Reason

_REDIRECTS = 5
_PORTS = {"https": 443, "http": 80, "oci": 443}
_DENIED = frozenset({401, 403})
_TIMEOUT = httpx.Timeout(60.0, connect=10.0)


@dataclass(frozen=True, slots=True)
class ChartDownloads:
    """Where charts may be fetched from, and as whom."""

    link: Link
    credentials: SourceCredentials
    allow_private: bool = False
    resolve: Resolve = resolve_host

    @property
    def reach(self) -> Reach:
        """Where connections may go: checked again for each, because names change."""
        return Reach(allow_private=self.allow_private, resolve=self.resolve)

    async def check_address(self, url: str) -> None:
        """Raise if a URL cannot be used, or if its host is a private one and those are refused."""
        parts = urlsplit(url)
        if parts.scheme not in _PORTS or not parts.hostname or "@" in parts.netloc:
            _refuse(
                f"`{url[:200]}` is not the address of a chart repository: write https:// or oci://"
            )
        if self.link.proxy:
            check_literal(parts.hostname, allow_private=self.allow_private)
        else:
            port = parts.port or _PORTS[parts.scheme]
            await choose_ip(Address(url, parts.scheme, parts.hostname, port), self.reach)

    def find_credential(self, context: JobContext, url: str) -> Credential | None:
        """Return the credential of the longest matching prefix; its secrets are masked."""
        credential = self.credentials.find_password(url)
        if credential is not None:
            context.log.hide(list_secrets(credential))
        return credential

    async def fetch(self, context: JobContext, url: str, target: Path, *, most: int) -> str:
        """Download a file; return the address that it came from after redirects."""
        transport = open_transport(self.link, build_tls(self.link), 1, reach=self.reach)
        first = urlsplit(url)
        async with httpx.AsyncClient(
            transport=transport, trust_env=False, timeout=_TIMEOUT
        ) as client:
            for _ in range(_REDIRECTS):
                await self.check_address(url)
                # A password goes to the host that it is for, never to one that it redirects to.
                is_same = urlsplit(url)[:2] == first[:2]
                credential = self.find_credential(context, url) if is_same else None
                moved = await _fetch_once(client, self.link, url, target, most, credential)
                if moved is None:
                    return url
                url = urljoin(url, moved)
        message = f"`{url[:200]}` redirects too often"
        raise WorkFailed(Reason.SOURCE_INVALID, message)


async def _fetch_once(
    client: httpx.AsyncClient,
    link: Link,
    url: str,
    target: Path,
    most: int,
    credential: Credential | None,
) -> str | None:
    """Download to a file; return where to go instead if the answer is a redirect."""
    try:
        async with client.stream("GET", url, headers=_authorise(credential)) as reply:
            if reply.has_redirect_location:
                return str(reply.headers["Location"])
            _check_status(reply, url)
            size = 0
            with target.open("wb") as out:
                async for chunk in reply.aiter_bytes():
                    size += len(chunk)
                    if size > most:
                        _refuse(f"`{url}` has more than {most >> 20} MiB")
                    out.write(chunk)
    except AddressRefused as refused:
        raise explain_refusal(refused) from refused
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        problem: Problem = explain_failure(link, error)
        message = f"`{url}` cannot be fetched: {problem.message}"
        raise WorkFailed(Reason.NETWORK, message) from error
    return None


def _check_status(reply: httpx.Response, url: str) -> None:
    if reply.status_code in _DENIED:
        message = (
            f"`{url}` asks for a name and a password ({reply.status_code}): add them to the build"
            " runner's source-credentials.json, with a prefix of this address"
        )
        raise WorkFailed(Reason.ACCESS_DENIED, message)
    if not reply.is_success:
        message = f"`{url}` was answered {reply.status_code}"
        raise WorkFailed(Reason.SOURCE_UNAVAILABLE, message)


def _authorise(credential: Credential | None) -> Mapping[str, str]:
    login = make_login(credential)
    return {} if login is None else {"Authorization": login.write_basic()}


def make_login(credential: Credential | None) -> Login | None:
    """Return the name and the password of a credential, if it has one."""
    if credential is None or credential.password is None:
        return None
    return Login(credential.username, list_secrets(credential)[0])


def _refuse(message: str) -> NoReturn:
    raise WorkFailed(Reason.SOURCE_INVALID, message)
