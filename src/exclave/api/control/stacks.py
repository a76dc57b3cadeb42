"""Stacks of installs: create one for the customer, show versions, links and what was reported."""

from typing import Annotated

from fastapi import Path, Query

from exclave.api.credentials import DepsOf, UserOf
from exclave.api.idempotency import idempotent
from exclave.api.ids import InstallOf, read_id
from exclave.api.routes import UserRoute, make_router
from exclave.control.stacks import cloud_stacks, stacks
from exclave.wire.stacks import StackCreated, StackDiff, StackLinks, StackReply, StackVersions

router = make_router("/v1/installs/{install}/stack", "installs", UserRoute)

VersionOf = Annotated[int | None, Query(ge=1, le=1_000_000)]
LinkOf = Annotated[str, Path(max_length=200, description="The id of a link, `stl…`.")]


@router.get("")
async def show_stack(install: InstallOf, user: UserOf, deps: DepsOf) -> StackReply:
    """Show what the customer's Stack reported last."""
    return await stacks.show_stack(deps, user, install)


@router.post("", status_code=201)
@idempotent(secret=True)
async def create_stack(install: InstallOf, user: UserOf, deps: DepsOf) -> StackCreated:
    """Create a Stack for the customer: with a one-time token for `local`, a link for a cloud.

    The token or link is shown once. A new token voids older unused ones; links stay.
    """
    return await stacks.create_stack(deps, user, install)


@router.get("/versions")
async def list_stack_versions(install: InstallOf, user: UserOf, deps: DepsOf) -> StackVersions:
    """List the last versions of the Stack: which one the customer runs, and which one waits."""
    return await cloud_stacks.list_versions(deps, user, install)


@router.get("/diff")
async def compare_stack_versions(
    install: InstallOf,
    user: UserOf,
    deps: DepsOf,
    before: VersionOf = None,
    after: VersionOf = None,
) -> StackDiff:
    """Compare two versions; by default the one that the customer runs with the newest."""
    return await cloud_stacks.compare_stack(deps, user, install, before, after)


@router.get("/links")
async def list_stack_links(install: InstallOf, user: UserOf, deps: DepsOf) -> StackLinks:
    """List the links with which the customer looks at the Stack."""
    return await cloud_stacks.list_links(deps, user, install)


@router.delete("/links/{link}", status_code=204)
async def revoke_stack_link(install: InstallOf, link: LinkOf, user: UserOf, deps: DepsOf) -> None:
    """Revoke a link."""
    await cloud_stacks.revoke_link(deps, user, install, read_id(link))
