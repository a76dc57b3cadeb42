"""The registry in the Control API: tokens for its clients, repositories, garbage collection."""

from exclave.api.credentials import DepsOf, UserOf
from exclave.api.idempotency import idempotent
from exclave.api.ids import RegistryTokenOf
from exclave.api.queries import PageOf, RepositoriesOf, TagsOf
from exclave.api.routes import UserRoute, make_router
from exclave.control.registry import gc, repositories, tokens
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

router = make_router("/v1/registry", "registry", UserRoute)


@router.post("/tokens", status_code=201)
@idempotent(secret=True)
async def create_registry_token(
    body: NewRegistryToken, user: UserOf, deps: DepsOf
) -> RegistryTokenCreated:
    """Create a short-lived password for registry clients. It is shown once."""
    return await tokens.create_registry_token(deps, user, body)


@router.get("/tokens")
async def list_registry_tokens(page: PageOf, user: UserOf, deps: DepsOf) -> Page[RegistryTokenInfo]:
    """List the valid registry tokens, without their secrets."""
    return await tokens.list_registry_tokens(deps, user, page.cursor, page.limit)


@router.delete("/tokens/{registry_token}", status_code=204)
async def revoke_registry_token(
    registry_token: RegistryTokenOf, user: UserOf, deps: DepsOf
) -> None:
    """Revoke a registry token at once."""
    await tokens.revoke_registry_token(deps, user, registry_token)


@router.get("/repositories")
async def list_repositories(
    page: RepositoriesOf, user: UserOf, deps: DepsOf
) -> Page[RepositoryInfo]:
    """List the org's repositories by name."""
    return await repositories.list_repositories(deps, user, page.cursor, page.limit)


@router.get("/tags")
async def list_tags(page: TagsOf, user: UserOf, deps: DepsOf) -> Page[TagInfo]:
    """List the tags of a repository."""
    return await repositories.list_tags(deps, user, page.repository, page.cursor, page.limit)


@router.post("/gc")
@idempotent()
async def collect_garbage(body: CollectGarbage, user: UserOf, deps: DepsOf) -> GarbageReport:
    """Delete unreferenced content, or show what would be deleted; pinned content is kept."""
    return await gc.collect_garbage(deps, user, body)
