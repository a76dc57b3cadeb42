"""The registry's routes of the Control API."""

from exclave.client.control_http import ControlCalls, part
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


class RegistryCalls:
    """What people do with the registry that is no pushing or pulling."""

    def __init__(self, calls: ControlCalls) -> None:
        self._calls = calls

    async def create_token(self, body: NewRegistryToken) -> RegistryTokenCreated:
        """Make a credential for registry clients; the reply holds its secret."""
        return await self._calls.post(RegistryTokenCreated, "/v1/registry/tokens", body)

    async def list_tokens(
        self, cursor: str | None = None, limit: int = 100
    ) -> Page[RegistryTokenInfo]:
        """Read a page of the credentials that are good, without their secrets."""
        path = "/v1/registry/tokens"
        return await self._calls.get(Page[RegistryTokenInfo], path, cursor=cursor, limit=limit)

    async def revoke_token(self, token: str) -> None:
        """Make a credential worthless, at once."""
        await self._calls.delete(f"/v1/registry/tokens/{part(token)}")

    async def list_repositories(
        self, cursor: str | None = None, limit: int = 100
    ) -> Page[RepositoryInfo]:
        """Read a page of the org's repositories."""
        path = "/v1/registry/repositories"
        return await self._calls.get(Page[RepositoryInfo], path, cursor=cursor, limit=limit)

    async def list_tags(
        self, repository: str, cursor: str | None = None, limit: int = 100
    ) -> Page[TagInfo]:
        """Read a page of a repository's tags."""
        return await self._calls.get(
            Page[TagInfo], "/v1/registry/tags", repository=repository, cursor=cursor, limit=limit
        )

    async def collect_garbage(self, body: CollectGarbage) -> GarbageReport:
        """Remove what nothing names, or tell what would go."""
        return await self._calls.post(GarbageReport, "/v1/registry/gc", body)
