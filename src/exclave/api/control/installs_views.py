"""Views of an install: its inputs, the versions of its state, the app's README."""

from exclave.api.credentials import DepsOf, UserOf
from exclave.api.ids import InstallOf
from exclave.api.queries import InstallStateOf, VersionOf
from exclave.api.routes import UserRoute, make_router
from exclave.control.installs import inputs, state_views
from exclave.wire.installs import InputsReply, ReadmeReply, StateReply

router = make_router("/v1/installs", "installs", UserRoute)


@router.get("/{install}/inputs")
async def show_inputs(
    install: InstallOf, query: VersionOf, user: UserOf, deps: DepsOf
) -> InputsReply:
    """Show the inputs of an install; values of sensitive ones are left out."""
    return await inputs.show_inputs(deps, user, install, query.version)


@router.get("/{install}/state")
async def show_state(
    install: InstallOf, query: InstallStateOf, user: UserOf, deps: DepsOf
) -> StateReply:
    """Show a version of the state that templates read."""
    return await state_views.show_state(deps, user, install, version=query.version, at=query.at)


@router.get("/{install}/readme")
async def show_readme(install: InstallOf, user: UserOf, deps: DepsOf) -> ReadmeReply:
    """Show the app's README with the values of this install."""
    return await state_views.show_readme(deps, user, install)
