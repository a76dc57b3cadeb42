"""Calls about actions and runbooks of an install."""

from exclave.client.control_http import ControlCalls, part
from exclave.wire.actions import (
    ActionReply,
    RunAction,
    RunbookReply,
    RunReply,
    RunRunbook,
    WorkflowReply,
)
from exclave.wire.model import Page


class ActionCalls:
    """Actions and runbooks."""

    def __init__(self, calls: ControlCalls) -> None:
        self._calls = calls

    async def list_actions(self, install: str) -> Page[ActionReply]:
        """Read the actions of an install."""
        return await self._calls.get(Page[ActionReply], f"/v1/installs/{part(install)}/actions")

    async def run_action(self, install: str, body: RunAction) -> WorkflowReply:
        """Run an action."""
        path = f"/v1/installs/{part(install)}/actions/run"
        return await self._calls.post(WorkflowReply, path, body)

    async def list_runs(
        self,
        install: str,
        cursor: str | None = None,
        limit: int = 100,
        *,
        action: str | None = None,
    ) -> Page[RunReply]:
        """Read a page of runs."""
        path = f"/v1/installs/{part(install)}/actions/runs"
        return await self._calls.get(
            Page[RunReply], path, cursor=cursor, limit=limit, action=action
        )

    async def list_runbooks(self, install: str) -> Page[RunbookReply]:
        """Read the runbooks of an install."""
        return await self._calls.get(Page[RunbookReply], f"/v1/installs/{part(install)}/runbooks")

    async def run_runbook(self, install: str, body: RunRunbook) -> WorkflowReply:
        """Run a runbook."""
        path = f"/v1/installs/{part(install)}/runbooks/run"
        return await self._calls.post(WorkflowReply, path, body)
