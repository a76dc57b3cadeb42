"""Terraform states of an install: headers, resources, locks, rescued states, orphans."""

from exclave.api.credentials import DepsOf, UserOf
from exclave.api.idempotency import idempotent
from exclave.api.ids import InstallOf, WorkspaceOf
from exclave.api.queries import OrphansOf, VersionOf
from exclave.api.routes import UserRoute, make_router
from exclave.control.terraform import orphans, rescued_states, workspaces
from exclave.wire.model import Page
from exclave.wire.terraform import (
    OrphansReply,
    RescuedState,
    RestoreState,
    TfWorkspaceDetail,
    TfWorkspaceReply,
    UnlockWorkspace,
)

router = make_router("/v1/installs/{install}", "terraform", UserRoute)


@router.get("/tf-states")
async def list_tf_states(install: InstallOf, user: UserOf, deps: DepsOf) -> Page[TfWorkspaceReply]:
    """List the Terraform workspaces of an install."""
    return await workspaces.list_workspaces(deps, user, install)


@router.get("/tf-states/{workspace}")
async def show_tf_state(
    install: InstallOf, workspace: WorkspaceOf, query: VersionOf, user: UserOf, deps: DepsOf
) -> TfWorkspaceDetail:
    """Show a state's header and resources; its content is sealed."""
    return await workspaces.show_workspace(deps, user, install, workspace, query.version)


@router.post("/tf-states/{workspace}/unlock")
@idempotent()
async def unlock_tf_state(
    install: InstallOf, workspace: WorkspaceOf, body: UnlockWorkspace, user: UserOf, deps: DepsOf
) -> TfWorkspaceDetail:
    """Remove a lock that an ended execution left behind."""
    return await workspaces.unlock_workspace(deps, user, install, workspace, body.reason)


@router.get("/tf-states/{workspace}/rescued")
async def list_rescued_states(
    install: InstallOf, workspace: WorkspaceOf, user: UserOf, deps: DepsOf
) -> Page[RescuedState]:
    """List rescued states, which runners could not store normally."""
    return await rescued_states.list_rescued(deps, user, install, workspace)


@router.post("/tf-states/{workspace}/restore")
@idempotent()
async def restore_tf_state(
    install: InstallOf, workspace: WorkspaceOf, body: RestoreState, user: UserOf, deps: DepsOf
) -> TfWorkspaceDetail:
    """Restore a rescued state or an older version; 409 while a job holds the lane."""
    return await rescued_states.restore_state(deps, user, install, workspace, body)


@router.get("/orphans")
async def list_orphans(
    install: InstallOf, query: OrphansOf, user: UserOf, deps: DepsOf
) -> OrphansReply:
    """List resources that interrupted applies created and that are in no state."""
    return await orphans.list_orphans(deps, user, install, every=query.all)
