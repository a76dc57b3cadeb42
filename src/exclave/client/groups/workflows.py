"""Calls about workflows and their steps."""

from collections.abc import AsyncIterator

from pydantic import BaseModel

from exclave.client.control_http import ControlHttp, part
from exclave.client.event_stream import OnOutage
from exclave.client.following import follow_workflow
from exclave.wire.model import Page
from exclave.wire.workflows import (
    Approve,
    Deny,
    NewWorkflow,
    SendEvent,
    SetApproveAll,
    SkipStep,
    WorkflowReply,
    WorkflowState,
    WorkflowSummary,
)


class Workflows:
    """Workflows: start, follow, approve, cancel."""

    def __init__(self, http: ControlHttp) -> None:
        self._http = http

    async def list(
        self,
        cursor: str | None = None,
        limit: int = 100,
        *,
        queue_id: str | None = None,
        state: WorkflowState | None = None,
    ) -> Page[WorkflowSummary]:
        """Return a page of workflows, newest first."""
        return await self._http.list_page(
            WorkflowSummary, "/v1/workflows", cursor, limit, queue_id=queue_id, state=state
        )

    async def create(self, body: NewWorkflow) -> WorkflowReply:
        """Start a workflow."""
        return await self._http.post(WorkflowReply, "/v1/workflows", body)

    async def get(self, workflow_id: str) -> WorkflowReply:
        """Return a workflow with its steps."""
        return await self._http.get(WorkflowReply, f"/v1/workflows/{part(workflow_id)}")

    def follow(
        self, workflow_id: str, on_outage: OnOutage | None = None
    ) -> AsyncIterator[WorkflowReply]:
        """Yield the workflow now and after each change, until it has ended."""
        return follow_workflow(self._http, workflow_id, on_outage)

    async def cancel(self, workflow_id: str) -> WorkflowReply:
        """Request the cancellation of a workflow."""
        return await self._http.post(WorkflowReply, f"/v1/workflows/{part(workflow_id)}/cancel")

    async def set_approve_all(self, workflow_id: str, body: SetApproveAll) -> WorkflowReply:
        """Switch automatic approval of the workflow's gates on or off."""
        path = f"/v1/workflows/{part(workflow_id)}/approve-all"
        return await self._http.put(WorkflowReply, path, body)

    async def approve(self, workflow_id: str, gate: str, body: Approve) -> WorkflowReply:
        """Approve the plan of a gate."""
        return await self._post_to_step(workflow_id, gate, "approve", body)

    async def deny(self, workflow_id: str, gate: str, body: Deny) -> WorkflowReply:
        """Deny the plan of a gate."""
        return await self._post_to_step(workflow_id, gate, "deny", body)

    async def retry(self, workflow_id: str, step: str) -> WorkflowReply:
        """Run a failed step again."""
        return await self._post_to_step(workflow_id, step, "retry")

    async def skip(self, workflow_id: str, step: str, body: SkipStep) -> WorkflowReply:
        """Continue without a failed step."""
        return await self._post_to_step(workflow_id, step, "skip", body)

    async def send_event(self, workflow_id: str, step: str, body: SendEvent) -> WorkflowReply:
        """Send the event that a step waits for."""
        return await self._post_to_step(workflow_id, step, "event", body)

    async def _post_to_step(
        self, workflow_id: str, step: str, action: str, body: BaseModel | None = None
    ) -> WorkflowReply:
        path = f"/v1/workflows/{part(workflow_id)}/steps/{part(step)}/{action}"
        return await self._http.post(WorkflowReply, path, body)
