"""Terraform over the Control API: states, locks, orphans, plans."""

from exclave.client.control_http import ControlCalls, part
from exclave.wire.model import Page
from exclave.wire.terraform import (
    OrphansReply,
    PlanDocument,
    RescuedState,
    RestoreState,
    TfWorkspaceDetail,
    TfWorkspaceReply,
    UnlockWorkspace,
)


class TerraformCalls:
    """The calls of one token."""

    def __init__(self, calls: ControlCalls) -> None:
        self._calls = calls

    async def list_states(self, install_id: str) -> Page[TfWorkspaceReply]:
        """List the workspaces of an install."""
        path = f"/v1/installs/{part(install_id)}/tf-states"
        return await self._calls.get(Page[TfWorkspaceReply], path)

    async def get_state(
        self, install_id: str, workspace: str, version: int | None = None
    ) -> TfWorkspaceDetail:
        """Read the header and the resources of a state."""
        path = f"/v1/installs/{part(install_id)}/tf-states/{part(workspace)}"
        return await self._calls.get(TfWorkspaceDetail, path, version=version)

    async def unlock_state(
        self, install_id: str, workspace: str, body: UnlockWorkspace
    ) -> TfWorkspaceDetail:
        """Remove the lock that an ended execution left."""
        path = f"/v1/installs/{part(install_id)}/tf-states/{part(workspace)}/unlock"
        return await self._calls.post(TfWorkspaceDetail, path, body)

    async def list_rescued(self, install_id: str, workspace: str) -> Page[RescuedState]:
        """List the states that runners could not store."""
        path = f"/v1/installs/{part(install_id)}/tf-states/{part(workspace)}/rescued"
        return await self._calls.get(Page[RescuedState], path)

    async def restore_state(
        self, install_id: str, workspace: str, body: RestoreState
    ) -> TfWorkspaceDetail:
        """Make a rescued state or an older version the next one."""
        path = f"/v1/installs/{part(install_id)}/tf-states/{part(workspace)}/restore"
        return await self._calls.post(TfWorkspaceDetail, path, body)

    async def list_orphans(self, install_id: str, *, every: bool = False) -> OrphansReply:
        """List what interrupted applies left behind."""
        path = f"/v1/installs/{part(install_id)}/orphans"
        return await self._calls.get(OrphansReply, path, all="true" if every else None)

    async def get_plan(self, job_id: str) -> PlanDocument:
        """Read the plan of a job."""
        path = f"/v1/jobs/{part(job_id)}/attachments/plan.json"
        return await self._calls.get(PlanDocument, path)
