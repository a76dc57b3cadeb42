"""Health and readiness of this server, checked by a write, at most once in a few seconds."""

import asyncio

from exclave.base.errors import Problem, Unavailable
from exclave.control.deps import Deps
from exclave.storage import metrics
from exclave.storage.engine.database import Tx
from exclave.storage.migrate import find_newest, read_revision

KEPT_S = 5.0
"""How long an answer is kept: the routes are open to everybody, and a write costs a commit."""
_WITHIN_S = 5.0


async def check_health(deps: Deps) -> None:
    """Raise if the database does not accept a write."""
    watch = deps.health
    async with watch.lock:
        now = deps.clock.monotonic()
        if watch.checked_at is None or now - watch.checked_at >= KEPT_S:
            watch.problem = await _try(deps)
            watch.checked_at = deps.clock.monotonic()
    if watch.problem is not None:
        raise watch.problem.with_traceback(None)  # it is raised often, and remembers each time


async def check_readiness(deps: Deps) -> None:
    """Raise if this server should get no requests: unhealthy, stopping, or short of disk."""
    if deps.health.stopping:
        raise Unavailable("the server is shutting down")
    await check_health(deps)
    if deps.disk is not None and not deps.disk.has_room():
        raise Unavailable(
            "the disk of the control plane is nearly full",
            hint="Make room on the disk of the data folder; large requests are refused meanwhile.",
        )


async def _try(deps: Deps) -> Problem | None:
    try:
        async with asyncio.timeout(_WITHIN_S):
            await deps.db.write(_probe)
    except TimeoutError:
        return Unavailable("the database does not answer in time")
    except Problem as problem:
        return problem
    return None


def _probe(tx: Tx) -> None:
    metrics.write_probe(tx)
    if read_revision(tx.connection) < find_newest():
        raise Unavailable(
            "the database has an older schema than this server",
            hint="Start the server again: it migrates the database.",
        )
