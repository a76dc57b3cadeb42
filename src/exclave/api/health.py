"""Whether a server is well; the same on both ports, and open to everybody."""

from typing import Literal

from exclave import __version__
from exclave.api.credentials import DepsOf
from exclave.api.routes import PublicRoute, make_router
from exclave.control.health import check_health, check_readiness
from exclave.wire.model import Reply

router = make_router("", "health", PublicRoute)


class Health(Reply):
    """The server answers, and its database takes writes."""

    status: Literal["ok"] = "ok"
    version: str = __version__


@router.get("/healthz")
async def show_health(deps: DepsOf) -> Health:
    """Tell whether this server can work; 503 if its database takes no writes."""
    await check_health(deps)
    return Health()


@router.get("/readyz")
async def show_readiness(deps: DepsOf) -> Health:
    """Tell whether to send requests here; 503 also at shutdown and when the disk is nearly full."""
    await check_readiness(deps)
    return Health()
