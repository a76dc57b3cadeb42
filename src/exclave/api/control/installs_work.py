"""Changes of an install: workflows, inputs, upgrades, install files."""

from exclave.api.credentials import DepsOf, UserOf
from exclave.api.idempotency import idempotent
from exclave.api.ids import InstallOf
from exclave.api.routes import UserRoute, make_router
from exclave.control.installs import config_files, inputs, upgrades, workflow_requests
from exclave.wire.installs import (
    InputsChanged,
    InstallsSynced,
    SetInputs,
    StartWork,
    SyncInstalls,
    Upgrade,
    UpgradeReply,
)
from exclave.wire.workflows import WorkflowReply

router = make_router("/v1/installs", "installs", UserRoute)
files = make_router("/v1/install-configs", "installs", UserRoute)


@router.post("/{install}/workflows", status_code=202)
@idempotent()
async def start_work(
    install: InstallOf, body: StartWork, user: UserOf, deps: DepsOf
) -> WorkflowReply:
    """Start a workflow: provision, deploy, tear down, scan for drift and so on."""
    return await workflow_requests.start_work(deps, user, install, body)


@router.post("/{install}/inputs", status_code=202)
@idempotent()
async def set_inputs(
    install: InstallOf, body: SetInputs, user: UserOf, deps: DepsOf
) -> InputsChanged:
    """Set inputs; the workflow redeploys exactly the parts that read changed ones."""
    return await inputs.set_inputs(deps, user, install, body)


@router.post("/{install}/upgrade", status_code=202)
@idempotent()
async def upgrade_install(
    install: InstallOf, body: Upgrade, user: UserOf, deps: DepsOf
) -> UpgradeReply:
    """Move an install to a config of its app, or show what that would change."""
    return await upgrades.upgrade_install(deps, user, install, body)


@files.post("", status_code=202)
@idempotent()
async def sync_installs(body: SyncInstalls, user: UserOf, deps: DepsOf) -> InstallsSynced:
    """Apply install files to installs; if one is refused, none is changed."""
    return await config_files.sync_installs(deps, user, body)
