"""The registry that a runner uses; the embedded one is served at `/v2`."""

from exclave.api.credentials import DepsOf, RunnerOf
from exclave.api.routes import RunnerRoute, make_router
from exclave.control.registry import access
from exclave.wire.registry import RegistryPlace

router = make_router("/v1/registry", "registry", RunnerRoute)


@router.get("")
async def show_registry(who: RunnerOf, deps: DepsOf) -> RegistryPlace:
    """Show where artifacts are stored: in an external registry, or in the embedded one."""
    return await access.show_place(deps, who)
