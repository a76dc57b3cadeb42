"""Repositories and tags in the Control API."""

from exclave.base.errors import NotFound
from exclave.control.access import require
from exclave.control.deps import Deps
from exclave.control.pagination import clamp
from exclave.domain.identity import Right, User
from exclave.storage import registry
from exclave.storage.engine.database import Tx
from exclave.wire.model import Page
from exclave.wire.registry import RepositoryInfo, TagInfo


async def list_repositories(
    deps: Deps, user: User, cursor: str, limit: int
) -> Page[RepositoryInfo]:
    """List the org's repositories by name."""
    require(user, Right.READ)
    wanted = clamp(limit)
    rows = await deps.db.read(
        lambda tx: registry.list_repositories(tx, user.org, cursor, wanted + 1)
    )
    items = [
        RepositoryInfo(name=row.repository, manifests=row.manifests, tags=row.tags, size=row.size)
        for row in rows[:wanted]
    ]
    return Page(items=items, next=items[-1].name if len(rows) > wanted else None)


async def list_tags(
    deps: Deps, user: User, repository: str, cursor: str, limit: int
) -> Page[TagInfo]:
    """List the tags of a repository."""
    require(user, Right.READ)
    wanted = clamp(limit)

    def find(tx: Tx) -> Page[TagInfo]:
        if not registry.has_repository(tx, user.org, repository):
            raise NotFound("there is no such repository")
        rows = registry.list_tags(tx, user.org, repository, cursor, wanted + 1)
        items = [
            TagInfo(tag=row.tag, digest=row.digest, changed_at=row.changed_at)
            for row in rows[:wanted]
        ]
        return Page(items=items, next=items[-1].tag if len(rows) > wanted else None)

    return await deps.db.read(find)
