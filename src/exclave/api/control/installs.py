"""Installs, their labels and their lanes."""

from exclave.api.credentials import DepsOf, UserOf
from exclave.api.idempotency import idempotent
from exclave.api.ids import InstallOf, LaneOf
from exclave.api.queries import ForgetOf, InstallsOf
from exclave.api.routes import UserRoute, make_router
from exclave.control.installs import installs
from exclave.control.installs.installs import Wanted
from exclave.domain.installs import ManagedBy
from exclave.wire.installs import (
    InstallDetail,
    InstallReply,
    NewInstall,
    SetLabels,
    SetManagedBy,
)
from exclave.wire.jobs import ReleaseLane
from exclave.wire.model import Page
from exclave.wire.workflows import SetApproveAll

router = make_router("/v1/installs", "installs", UserRoute)


@router.get("")
async def list_installs(query: InstallsOf, user: UserOf, deps: DepsOf) -> Page[InstallReply]:
    """List the org's installs, oldest first."""
    wanted = Wanted(query.app, query.read_labels(), query.state, query.name)
    return await installs.list_installs(deps, user, query.cursor, query.limit, wanted)


@router.post("", status_code=201)
@idempotent()
async def create_install(body: NewInstall, user: UserOf, deps: DepsOf) -> InstallReply:
    """Create an install; `workflow_id` is the workflow that provisions it."""
    return await installs.create_install(deps, user, body)


@router.get("/{install}")
async def show_install(install: InstallOf, user: UserOf, deps: DepsOf) -> InstallDetail:
    """Show an install with its parts, lanes, runners and last workflows."""
    return await installs.show_install(deps, user, install)


@router.delete("/{install}", status_code=204)
async def delete_install(install: InstallOf, query: ForgetOf, user: UserOf, deps: DepsOf) -> None:
    """Delete an install that is deprovisioned, or one that is not, with a reason."""
    await installs.delete_install(deps, user, install, query.forget or "")


@router.put("/{install}/labels")
async def set_labels(
    install: InstallOf, body: SetLabels, user: UserOf, deps: DepsOf
) -> InstallReply:
    """Replace the labels of an install."""
    return await installs.set_labels(deps, user, install, body.labels)


@router.put("/{install}/approve-all")
async def set_install_approve_all(
    install: InstallOf, body: SetApproveAll, user: UserOf, deps: DepsOf
) -> InstallReply:
    """Switch automatic approval for workflows that start from now on."""
    return await installs.set_approve_all(deps, user, install, on=body.approve_all)


@router.put("/{install}/managed-by")
async def set_managed_by(
    install: InstallOf, body: SetManagedBy, user: UserOf, deps: DepsOf
) -> InstallReply:
    """Set whether an install is managed by files or by users."""
    return await installs.set_managed_by(deps, user, install, ManagedBy(body.managed_by))


@router.post("/{install}/lanes/{lane}/release")
@idempotent()
async def release_lane(
    install: InstallOf, lane: LaneOf, body: ReleaseLane, user: UserOf, deps: DepsOf
) -> InstallDetail:
    """Release a lane after a person has checked its resources."""
    return await installs.release_lane(deps, user, install, lane, body.reason)
