"""Health checks: the same on both ports, without authentication."""

from typing import Literal

from exclave import __version__
from exclave.api.credentials import DepsOf
from exclave.api.routes import PublicRoute, make_router
from exclave.control.health import check_health, check_readiness
from exclave.wire.model import Reply

router = make_router("", "health", PublicRoute)


class Health(Reply):
    """The server answers, and its database accepts writes."""

    status: Literal["ok"] = "ok"
    version: str = __version__


@router.get("/healthz")
async def show_health(deps: DepsOf) -> Health:
    """Check the server; 503 if its database accepts no writes."""
    await check_health(deps)
    return Health()


@router.get("/readyz")
async def show_readiness(deps: DepsOf) -> Health:
    """Check for load balancers; 503 also at shutdown and while the disk is nearly full."""
    await check_readiness(deps)
    return Health()
