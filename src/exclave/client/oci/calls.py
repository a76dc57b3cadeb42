"""One call of a registry: sent with the right header, repeated when it may help, refusals read."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TypeVar

import httpx

from exclave import __version__
from exclave.base.clock import Clock, SystemClock
from exclave.base.errors import InvalidInput
from exclave.base.ids import Randomness, SystemRandomness
from exclave.client.oci.auth import Authorization
from exclave.client.oci.documents import MAX_MANIFEST, read_refusal
from exclave.client.problems import UnexpectedReply
from exclave.client.retry import Attempts, NoteRetry, RetryPolicy, retry
from exclave.client.transport import Link, explain_failure

T = TypeVar("T")
Content = Callable[[], bytes | AsyncIterator[bytes]]
"""Makes the body anew, because a request may have to be sent twice."""

PATIENCE = RetryPolicy(first_s=0.3, longest_s=10.0, give_up_s=120.0)
_TIMEOUT = httpx.Timeout(60.0, connect=10.0, pool=None)
_READS = frozenset({"GET", "HEAD"})
_UNSENT = ("content-encoding", "content-length", "transfer-encoding")


class OciCalls:
    """Sends requests below one folder of one registry."""

    def __init__(
        self,
        base_url: str,
        authorization: Authorization,
        transport: httpx.AsyncBaseTransport | None = None,
        *,
        policy: RetryPolicy = PATIENCE,
        clock: Clock | None = None,
        randomness: Randomness | None = None,
    ) -> None:
        url = _check_url(base_url)
        self._prefix = url.path.strip("/")
        self._link = Link(str(url.copy_with(path="/")).rstrip("/"))
        self._authorization = authorization
        self._policy = policy
        self._clock = clock or SystemClock()
        self._randomness = randomness or SystemRandomness()
        self._http = httpx.AsyncClient(
            base_url=self._link.url,
            transport=transport,
            trust_env=False,
            timeout=_TIMEOUT,
            headers={"User-Agent": f"exclave/{__version__}"},
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    @property
    def registry(self) -> str:
        """The address of the registry, without a folder."""
        return self._link.url

    def name(self, repository: str) -> str:
        """Return the full name of a repository in the registry."""
        return f"{self._prefix}/{repository}" if self._prefix else repository

    def path(self, repository: str, rest: str) -> str:
        """Return the URL of a resource in a repository."""
        return f"{self._link.url}/v2/{self.name(repository)}/{rest}"

    async def repeat(self, call: Callable[[], Awaitable[T]]) -> T:
        """Retry an idempotent call until it is answered, for a limited time."""
        return await retry(call, self._policy, self._clock, self._randomness)

    def begin_attempts(self, note: NoteRetry | None = None) -> Attempts:
        """Return the attempts at a transfer, which ends only when nothing arrives for long."""
        return Attempts(self._policy, self._clock, self._randomness, note)

    async def send(
        self,
        method: str,
        path: str,
        repository: str,
        headers: Mapping[str, str] | None = None,
        content: Content = bytes,
    ) -> httpx.Response:
        """Send once and read a small answer."""
        async with self.open(method, path, repository, headers, content) as reply:
            body = bytearray()
            async for chunk in reply.aiter_bytes():
                body += chunk
                if len(body) > MAX_MANIFEST:
                    raise UnexpectedReply(f"{path} answered more than {MAX_MANIFEST} bytes")
        kept = [(name, value) for name, value in reply.headers.items() if name not in _UNSENT]
        return httpx.Response(
            reply.status_code, headers=kept, content=bytes(body), request=reply.request
        )

    @asynccontextmanager
    async def open(
        self,
        method: str,
        path: str,
        repository: str,
        headers: Mapping[str, str] | None = None,
        content: Content = bytes,
    ) -> AsyncIterator[httpx.Response]:
        """Send, once more after a challenge; refusals are raised, and failures explained."""
        actions = "pull" if method in _READS else "pull,push"
        scope = f"repository:{self.name(repository)}:{actions}"
        try:
            response = await self._attempt(method, path, scope, headers or {}, content)
            if response.status_code == httpx.codes.UNAUTHORIZED:
                await response.aread()
                if await self._authorization.learn(self._http, response, scope):
                    response = await self._attempt(method, path, scope, headers or {}, content)
            try:
                if not response.is_success:
                    await response.aread()
                    raise read_refusal(response)
                yield response
            finally:
                await response.aclose()
        except (httpx.HTTPError, OSError) as error:
            raise explain_failure(self._link, error) from error

    async def _attempt(
        self, method: str, path: str, scope: str, headers: Mapping[str, str], content: Content
    ) -> httpx.Response:
        sent = {**headers, **await self._authorization.write(scope)}
        body = content()
        request = self._http.build_request(method, path, headers=sent, content=body or None)
        # A registry may send readers to its object store; httpx drops our header on the way.
        return await self._http.send(request, stream=True, follow_redirects=method in _READS)


def _check_url(text: str) -> httpx.URL:
    try:
        url = httpx.URL(text)
    except httpx.InvalidURL:
        url = httpx.URL("")
    if url.scheme not in {"http", "https"} or not url.host:
        raise InvalidInput(
            f"`{text}` is not the address of a registry",
            hint="Give it as https://host/folder.",
        )
    return url
