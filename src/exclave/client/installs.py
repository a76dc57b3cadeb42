"""Calls about installs of apps."""

from collections.abc import Mapping
from datetime import datetime

from exclave.client.control_http import ControlCalls, part
from exclave.wire.installs import (
    InputsChanged,
    InputsReply,
    InstallReply,
    InstallsSynced,
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
from exclave.wire.model import Page
from exclave.wire.workflows import SetApproveAll, WorkflowReply


class InstallCalls:
    """Installs: filters, settings, inputs, work, views."""

    def __init__(self, calls: ControlCalls) -> None:
        self._calls = calls

    async def list_installs(
        self,
        cursor: str | None = None,
        limit: int = 100,
        *,
        app: str | None = None,
        state: str | None = None,
        name: str | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> Page[InstallReply]:
        """Read a page of the installs to which all conditions apply."""
        pairs = [f"{key}={value}" for key, value in (labels or {}).items()]
        return await self._calls.get(
            Page[InstallReply],
            "/v1/installs",
            cursor=cursor,
            limit=limit,
            app=app,
            state=state,
            name=name,
            label=pairs or None,
        )

    async def delete(self, install: str, forget: str | None = None) -> None:
        """Delete an install."""
        await self._calls.delete(f"/v1/installs/{part(install)}", forget=forget)

    async def set_labels(self, install: str, body: SetLabels) -> InstallReply:
        """Replace the labels."""
        return await self._calls.put(InstallReply, f"/v1/installs/{part(install)}/labels", body)

    async def set_approve_all(self, install: str, body: SetApproveAll) -> InstallReply:
        """Switch automatic approval."""
        path = f"/v1/installs/{part(install)}/approve-all"
        return await self._calls.put(InstallReply, path, body)

    async def set_managed_by(self, install: str, body: SetManagedBy) -> InstallReply:
        """Say who decides about it."""
        path = f"/v1/installs/{part(install)}/managed-by"
        return await self._calls.put(InstallReply, path, body)

    async def get_inputs(self, install: str, version: int | None = None) -> InputsReply:
        """Read the inputs."""
        path = f"/v1/installs/{part(install)}/inputs"
        return await self._calls.get(InputsReply, path, version=version)

    async def set_inputs(self, install: str, body: SetInputs) -> InputsChanged:
        """Give inputs new values."""
        return await self._calls.post(InputsChanged, f"/v1/installs/{part(install)}/inputs", body)

    async def upgrade(self, install: str, body: Upgrade) -> UpgradeReply:
        """Move an install to another config."""
        return await self._calls.post(UpgradeReply, f"/v1/installs/{part(install)}/upgrade", body)

    async def start_work(self, install: str, body: StartWork) -> WorkflowReply:
        """Begin a workflow."""
        path = f"/v1/installs/{part(install)}/workflows"
        return await self._calls.post(WorkflowReply, path, body)

    async def get_state(
        self, install: str, *, version: int | None = None, at: datetime | None = None
    ) -> StateReply:
        """Read a version of the state."""
        moment = None if at is None else at.isoformat()
        path = f"/v1/installs/{part(install)}/state"
        return await self._calls.get(StateReply, path, version=version, at=moment)

    async def get_readme(self, install: str) -> ReadmeReply:
        """Read the README."""
        return await self._calls.get(ReadmeReply, f"/v1/installs/{part(install)}/readme")

    async def sync(self, body: SyncInstalls) -> InstallsSynced:
        """Make installs what their files say."""
        return await self._calls.post(InstallsSynced, "/v1/install-configs", body)
