"""Builds of the parts of an app: list, show, build again."""

from exclave.api.credentials import DepsOf, UserOf
from exclave.api.idempotency import idempotent
from exclave.api.ids import BuildOf
from exclave.api.queries import BuildsOf
from exclave.api.routes import UserRoute, make_router
from exclave.control.builds import builds
from exclave.wire.builds import BuildReply, NewBuild
from exclave.wire.model import Page

router = make_router("/v1/builds", "builds", UserRoute)


@router.post("", status_code=202)
@idempotent()
async def create_build(body: NewBuild, user: UserOf, deps: DepsOf) -> BuildReply:
    """Build a part of an app's current version again; a branch or tag is resolved again."""
    return await builds.create_build(deps, user, body)


@router.get("")
async def list_builds(query: BuildsOf, user: UserOf, deps: DepsOf) -> Page[BuildReply]:
    """List builds, newest first."""
    return await builds.list_builds(
        deps,
        user,
        cursor=query.cursor,
        limit=query.limit,
        app=query.app,
        part=query.part,
        state=query.state,
    )


@router.get("/{build}")
async def show_build(build: BuildOf, user: UserOf, deps: DepsOf) -> BuildReply:
    """Show a build with its artifact, or with its error."""
    return await builds.show_build(deps, user, build)
