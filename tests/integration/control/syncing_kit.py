"""What a sync leaves behind: rows and archives."""

from exclave.control.deps import Deps
from tests.integration.control.rows_kit import count_rows

WRITTEN = ("configs", "config_parts", "builds", "config_builds", "workflows", "steps", "jobs")


async def count_synced(deps: Deps) -> dict[str, int]:
    """Count the rows of the tables that a sync writes."""
    return await count_rows(deps, WRITTEN)


async def list_archives(deps: Deps) -> list[str]:
    """List the archives that are kept."""
    return await deps.blobs.list_keys("configs")
