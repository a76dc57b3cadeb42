"""Workflows: create, list, show, follow, cancel."""

from collections.abc import AsyncGenerator

from fastapi import Request
from pydantic import BaseModel

from exclave.api.bare import BareUserRoute
from exclave.api.credentials import DepsOf, UserOf, admit_user
from exclave.api.idempotency import idempotent, read_keyed
from exclave.api.ids import WorkflowOf
from exclave.api.queries import WorkflowsOf
from exclave.api.requests import LimitedRequest, read_model
from exclave.api.routes import UserRoute, make_router
from exclave.api.streams import EventStream, open_stream, write_event
from exclave.control.deps import Deps
from exclave.control.workflows import workflows
from exclave.domain.identity import User
from exclave.domain.workflows import WorkflowId
from exclave.wire.model import Page
from exclave.wire.workflows import NewWorkflow, SetApproveAll, WorkflowReply, WorkflowSummary

CREATE = "/v1/workflows"

router = make_router(CREATE, "workflows", UserRoute)
described = make_router(CREATE, "workflows", UserRoute)
"""The bare route for the OpenAPI document; it is never served."""


class CreateRoute(BareUserRoute):
    """Creates workflows; a bare route, because every job begins with it."""

    status = 202

    async def answer(self, request: LimitedRequest, who: User) -> BaseModel | None:
        """Create the workflow, once per idempotency key."""
        body = await read_model(request, NewWorkflow)
        keyed = read_keyed(request, self.status)
        return await create_workflow(body=body, user=who, deps=self.deps, keyed=keyed)


@described.post("", status_code=202)
@idempotent()
async def create_workflow(body: NewWorkflow, user: UserOf, deps: DepsOf) -> WorkflowReply:
    """Start a workflow: its steps are stored, and run as their needs allow."""
    return await workflows.create_workflow(deps, user, body)


@router.get("")
async def list_workflows(query: WorkflowsOf, user: UserOf, deps: DepsOf) -> Page[WorkflowSummary]:
    """List workflows, newest first."""
    return await workflows.list_workflows(
        deps,
        user,
        cursor=query.cursor,
        limit=query.limit,
        queue=query.queue_id,
        state=query.state,
    )


@router.get("/{workflow}")
async def show_workflow(workflow: WorkflowOf, user: UserOf, deps: DepsOf) -> WorkflowReply:
    """Show a workflow with its steps."""
    return await workflows.show_workflow(deps, user, workflow)


@router.get("/{workflow}/stream", response_class=EventStream)
async def follow_workflow(
    workflow: WorkflowOf, user: UserOf, deps: DepsOf, request: Request
) -> EventStream:
    """Stream the workflow now and after each change as event `workflow`; `end` at its end."""
    await workflows.show_workflow(deps, user, workflow)
    return open_stream(
        _write_changes(deps, user, workflow),
        check=lambda: admit_user(deps, request),
        is_stopping=lambda: deps.hub.closed,
    )


@router.post("/{workflow}/cancel", status_code=202)
@idempotent()
async def cancel_workflow(workflow: WorkflowOf, user: UserOf, deps: DepsOf) -> WorkflowReply:
    """Cancel a workflow; running jobs are stopped."""
    return await workflows.cancel_workflow(deps, user, workflow)


@router.put("/{workflow}/approve-all")
async def set_approve_all(
    workflow: WorkflowOf, body: SetApproveAll, user: UserOf, deps: DepsOf
) -> WorkflowReply:
    """Switch automatic approval of open and future gates."""
    return await workflows.set_approve_all(deps, user, workflow, on=body.approve_all)


async def _write_changes(deps: Deps, user: User, workflow: WorkflowId) -> AsyncGenerator[bytes]:
    async for reply in workflows.watch_workflow(deps, user, workflow):
        yield write_event("workflow", reply.model_dump_json(), str(reply.revision))
