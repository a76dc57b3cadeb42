"""Calls about installs."""

from collections.abc import Mapping
from datetime import datetime

from exclave.client.control_http import ControlHttp, part
from exclave.wire.installs import (
    InputsChanged,
    InputsReply,
    InstallDetail,
    InstallReply,
    InstallsSynced,
    NewInstall,
    ReadmeReply,
    SetInputs,
    SetLabels,
    SetManagedBy,
    StartWork,
    StateReply,
    SyncInstalls,
    Upgrade,
    UpgradeReply,
)
from exclave.wire.jobs import ReleaseLane
from exclave.wire.model import Page
from exclave.wire.workflows import SetApproveAll, WorkflowReply


class Installs:
    """Installs: settings, inputs, workflows, state."""

    def __init__(self, http: ControlHttp) -> None:
        self._http = http

    async def list(
        self,
        cursor: str | None = None,
        limit: int = 100,
        *,
        app: str | None = None,
        state: str | None = None,
        name: str | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> Page[InstallReply]:
        """Return a page of the installs that match all filters."""
        pairs = [f"{key}={value}" for key, value in (labels or {}).items()]
        return await self._http.list_page(
            InstallReply,
            "/v1/installs",
            cursor,
            limit,
            app=app,
            state=state,
            name=name,
            label=pairs or None,
        )

    async def create(self, body: NewInstall) -> InstallReply:
        """Create an install."""
        return await self._http.post(InstallReply, "/v1/installs", body)

    async def get(self, install_id: str) -> InstallDetail:
        """Return an install with its components, lanes, runners and recent workflows."""
        return await self._http.get(InstallDetail, f"/v1/installs/{part(install_id)}")

    async def delete(self, install_id: str, forget: str | None = None) -> None:
        """Delete an install; `forget` is the reason for deleting it with resources left."""
        await self._http.delete(f"/v1/installs/{part(install_id)}", forget=forget)

    async def set_labels(self, install_id: str, body: SetLabels) -> InstallReply:
        """Replace the labels of an install."""
        return await self._http.put(InstallReply, f"/v1/installs/{part(install_id)}/labels", body)

    async def set_approve_all(self, install_id: str, body: SetApproveAll) -> InstallReply:
        """Switch automatic approval of the install's plans on or off."""
        path = f"/v1/installs/{part(install_id)}/approve-all"
        return await self._http.put(InstallReply, path, body)

    async def set_managed_by(self, install_id: str, body: SetManagedBy) -> InstallReply:
        """Set whether the install is managed by people or by a file."""
        path = f"/v1/installs/{part(install_id)}/managed-by"
        return await self._http.put(InstallReply, path, body)

    async def release_lane(self, install_id: str, lane: str, body: ReleaseLane) -> InstallDetail:
        """Unblock a lane after a person has checked it."""
        path = f"/v1/installs/{part(install_id)}/lanes/{part(lane)}/release"
        return await self._http.post(InstallDetail, path, body)

    async def get_inputs(self, install_id: str, version: int | None = None) -> InputsReply:
        """Return the inputs of an install, now or at a version."""
        path = f"/v1/installs/{part(install_id)}/inputs"
        return await self._http.get(InputsReply, path, version=version)

    async def set_inputs(self, install_id: str, body: SetInputs) -> InputsChanged:
        """Set inputs; the reply may hold the workflow that deploys the change."""
        return await self._http.post(InputsChanged, f"/v1/installs/{part(install_id)}/inputs", body)

    async def upgrade(self, install_id: str, body: Upgrade) -> UpgradeReply:
        """Move an install to another config version of its app."""
        return await self._http.post(UpgradeReply, f"/v1/installs/{part(install_id)}/upgrade", body)

    async def start_workflow(self, install_id: str, body: StartWork) -> WorkflowReply:
        """Start a workflow of an install, such as a deploy or a drift scan."""
        path = f"/v1/installs/{part(install_id)}/workflows"
        return await self._http.post(WorkflowReply, path, body)

    async def get_state(
        self, install_id: str, *, version: int | None = None, at: datetime | None = None
    ) -> StateReply:
        """Return a version of the install's state, or the one at a time."""
        moment = None if at is None else at.isoformat()
        path = f"/v1/installs/{part(install_id)}/state"
        return await self._http.get(StateReply, path, version=version, at=moment)

    async def get_readme(self, install_id: str) -> ReadmeReply:
        """Return the rendered README of the install."""
        return await self._http.get(ReadmeReply, f"/v1/installs/{part(install_id)}/readme")

    async def sync(self, body: SyncInstalls) -> InstallsSynced:
        """Create and change installs as their files describe them."""
        return await self._http.post(InstallsSynced, "/v1/install-configs", body)
