"""Calls about Terraform: states, locks, orphans, plans."""

from exclave.client.control_http import ControlHttp, part
from exclave.wire.model import Page
from exclave.wire.plans import PlanDocument
from exclave.wire.terraform import (
    OrphansReply,
    RescuedState,
    RestoreState,
    TfWorkspaceDetail,
    TfWorkspaceReply,
    UnlockWorkspace,
)


class Terraform:
    """Terraform states, locks, orphans and plans."""

    def __init__(self, http: ControlHttp) -> None:
        self._http = http

    async def list_states(self, install_id: str) -> Page[TfWorkspaceReply]:
        """Return the Terraform workspaces of an install."""
        path = f"/v1/installs/{part(install_id)}/tf-states"
        return await self._http.get(Page[TfWorkspaceReply], path)

    async def get_state(
        self, install_id: str, workspace: str, version: int | None = None
    ) -> TfWorkspaceDetail:
        """Return the header and the resources of a state."""
        path = f"/v1/installs/{part(install_id)}/tf-states/{part(workspace)}"
        return await self._http.get(TfWorkspaceDetail, path, version=version)

    async def unlock_state(
        self, install_id: str, workspace: str, body: UnlockWorkspace
    ) -> TfWorkspaceDetail:
        """Remove the lock that an ended execution left behind."""
        path = f"/v1/installs/{part(install_id)}/tf-states/{part(workspace)}/unlock"
        return await self._http.post(TfWorkspaceDetail, path, body)

    async def list_rescued(self, install_id: str, workspace: str) -> Page[RescuedState]:
        """Return the states that runners could not store."""
        path = f"/v1/installs/{part(install_id)}/tf-states/{part(workspace)}/rescued"
        return await self._http.get(Page[RescuedState], path)

    async def restore_state(
        self, install_id: str, workspace: str, body: RestoreState
    ) -> TfWorkspaceDetail:
        """Store a rescued state or an older version as the newest version."""
        path = f"/v1/installs/{part(install_id)}/tf-states/{part(workspace)}/restore"
        return await self._http.post(TfWorkspaceDetail, path, body)

    async def list_orphans(self, install_id: str, *, every: bool = False) -> OrphansReply:
        """Return the resources that interrupted applies may have left behind."""
        path = f"/v1/installs/{part(install_id)}/orphans"
        return await self._http.get(OrphansReply, path, all="true" if every else None)

    async def get_plan(self, job_id: str) -> PlanDocument:
        """Return the Terraform plan that a job made."""
        path = f"/v1/jobs/{part(job_id)}/attachments/plan.json"
        return await self._http.get(PlanDocument, path)
