"""Steps of a workflow, addressed by name: answer gates and waits, retry, skip."""

from exclave.api.credentials import DepsOf, UserOf
from exclave.api.idempotency import idempotent
from exclave.api.ids import StepOf, WorkflowOf
from exclave.api.routes import UserRoute, make_router
from exclave.control.workflows import workflows
from exclave.wire.workflows import Approve, Deny, SendEvent, SkipStep, WorkflowReply

router = make_router("/v1/workflows/{workflow}/steps/{step}", "steps", UserRoute)


@router.post("/approve", status_code=202)
@idempotent()
async def approve_step(
    workflow: WorkflowOf, step: StepOf, body: Approve, user: UserOf, deps: DepsOf
) -> WorkflowReply:
    """Approve exactly the digest that a gate shows."""
    return await workflows.approve_step(deps, user, workflow, step, body)


@router.post("/deny", status_code=202)
@idempotent()
async def deny_step(
    workflow: WorkflowOf, step: StepOf, body: Deny, user: UserOf, deps: DepsOf
) -> WorkflowReply:
    """Deny a gate; with `skip`, steps that need it are skipped and the rest goes on."""
    return await workflows.deny_step(deps, user, workflow, step, body)


@router.post("/retry", status_code=202)
@idempotent()
async def retry_step(
    workflow: WorkflowOf, step: StepOf, user: UserOf, deps: DepsOf
) -> WorkflowReply:
    """Retry a step that failed, was lost or was cancelled."""
    return await workflows.retry_step(deps, user, workflow, step)


@router.post("/skip", status_code=202)
@idempotent()
async def skip_step(
    workflow: WorkflowOf, step: StepOf, body: SkipStep, user: UserOf, deps: DepsOf
) -> WorkflowReply:
    """Skip a step."""
    return await workflows.skip_step(deps, user, workflow, step, body.reason)


@router.post("/event", status_code=202)
@idempotent()
async def send_event(
    workflow: WorkflowOf, step: StepOf, body: SendEvent, user: UserOf, deps: DepsOf
) -> WorkflowReply:
    """Answer a step that waits for an external event."""
    return await workflows.send_event(deps, user, workflow, step, body)
