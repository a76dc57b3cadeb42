"""Calls about actions and runbooks of an install."""

from exclave.client.control_http import ControlHttp, part
from exclave.wire.actions import (
    ActionReply,
    RunAction,
    RunbookReply,
    RunReply,
    RunRunbook,
    WorkflowReply,
)
from exclave.wire.model import Page


class Actions:
    """Actions and runbooks of an install."""

    def __init__(self, http: ControlHttp) -> None:
        self._http = http

    async def list(self, install_id: str) -> Page[ActionReply]:
        """Return the actions of an install."""
        return await self._http.get(Page[ActionReply], f"/v1/installs/{part(install_id)}/actions")

    async def run(self, install_id: str, body: RunAction) -> WorkflowReply:
        """Start a workflow that runs an action."""
        path = f"/v1/installs/{part(install_id)}/actions/run"
        return await self._http.post(WorkflowReply, path, body)

    async def list_runs(
        self,
        install_id: str,
        cursor: str | None = None,
        limit: int = 100,
        *,
        action: str | None = None,
    ) -> Page[RunReply]:
        """Return a page of action runs, newest first."""
        path = f"/v1/installs/{part(install_id)}/actions/runs"
        return await self._http.list_page(RunReply, path, cursor, limit, action=action)

    async def list_runbooks(self, install_id: str) -> Page[RunbookReply]:
        """Return the runbooks of an install."""
        return await self._http.get(Page[RunbookReply], f"/v1/installs/{part(install_id)}/runbooks")

    async def run_runbook(self, install_id: str, body: RunRunbook) -> WorkflowReply:
        """Start a workflow that runs a runbook."""
        path = f"/v1/installs/{part(install_id)}/runbooks/run"
        return await self._http.post(WorkflowReply, path, body)
