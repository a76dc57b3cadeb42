"""Whether a server is well; the same on both ports, and open to everybody."""

from typing import Literal

from exclave import __version__
from exclave.api.credentials import DepsOf
from exclave.api.routes import PublicRoute, make_router
from exclave.control.metrics import check_health
from exclave.wire.model import Reply

router = make_router("", "health", PublicRoute)


class Health(Reply):
    """The server answers, and so does its database."""

    status: Literal["ok"] = "ok"
    version: str = __version__


@router.get("/healthz")
async def show_health(deps: DepsOf) -> Health:
    """Tell whether this server can work; 503 if its database does not answer."""
    await check_health(deps)
    return Health()
