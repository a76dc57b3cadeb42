"""Installs and their lanes."""

from exclave.api.credentials import DepsOf, UserOf
from exclave.api.ids import InstallOf, LaneOf
from exclave.api.queries import PageOf
from exclave.api.repeats import OnceOf
from exclave.api.routes import UserRoute, make_router
from exclave.control import installs
from exclave.wire.identity import InstallReply, NewInstall
from exclave.wire.jobs import ReleaseLane
from exclave.wire.model import Page

router = make_router("/v1/installs", "installs", UserRoute)


@router.get("")
async def list_installs(page: PageOf, user: UserOf, deps: DepsOf) -> Page[InstallReply]:
    """List the org's installs, oldest first."""
    return await installs.list_installs(deps, user, page.cursor, page.limit)


@router.post("", status_code=201)
async def create_install(wish: NewInstall, user: UserOf, once: OnceOf) -> InstallReply:
    """Create an install."""
    return await once(InstallReply, wish, lambda deps: installs.create_install(deps, user, wish))


@router.get("/{install}")
async def show_install(install: InstallOf, user: UserOf, deps: DepsOf) -> InstallReply:
    """Show an install with its lanes."""
    return await installs.show_install(deps, user, install)


@router.post("/{install}/lanes/{lane}/release")
async def release_lane(
    install: InstallOf, lane: LaneOf, wish: ReleaseLane, user: UserOf, once: OnceOf
) -> InstallReply:
    """Let work on a lane go on after a person has looked at it."""
    return await once(
        InstallReply,
        wish,
        lambda deps: installs.release_lane(deps, user, install, lane, wish.reason),
    )
