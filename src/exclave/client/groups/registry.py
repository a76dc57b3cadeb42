"""Calls about the registry."""

from exclave.client.control_http import ControlHttp, part
from exclave.wire.model import Page
from exclave.wire.registry import (
    CollectGarbage,
    GarbageReport,
    NewRegistryToken,
    RegistryTokenCreated,
    RegistryTokenInfo,
    RepositoryInfo,
    TagInfo,
)


class Registry:
    """The OCI registry: credentials, repositories, garbage collection. Pulls and pushes use OCI."""

    def __init__(self, http: ControlHttp) -> None:
        self._http = http

    async def create_token(self, body: NewRegistryToken) -> RegistryTokenCreated:
        """Create a credential for registry clients; the reply holds its secret."""
        return await self._http.post(RegistryTokenCreated, "/v1/registry/tokens", body)

    async def list_tokens(
        self, cursor: str | None = None, limit: int = 100
    ) -> Page[RegistryTokenInfo]:
        """Return a page of the valid credentials, without their secrets."""
        path = "/v1/registry/tokens"
        return await self._http.list_page(RegistryTokenInfo, path, cursor, limit)

    async def revoke_token(self, token: str) -> None:
        """Revoke a credential at once."""
        await self._http.delete(f"/v1/registry/tokens/{part(token)}")

    async def list_repositories(
        self, cursor: str | None = None, limit: int = 100
    ) -> Page[RepositoryInfo]:
        """Return a page of the org's repositories."""
        path = "/v1/registry/repositories"
        return await self._http.list_page(RepositoryInfo, path, cursor, limit)

    async def list_tags(
        self, repository: str, cursor: str | None = None, limit: int = 100
    ) -> Page[TagInfo]:
        """Return a page of a repository's tags."""
        return await self._http.list_page(
            TagInfo, "/v1/registry/tags", cursor, limit, repository=repository
        )

    async def collect_garbage(self, body: CollectGarbage) -> GarbageReport:
        """Remove unreferenced artifacts, or report what would be removed."""
        return await self._http.post(GarbageReport, "/v1/registry/gc", body)
