"""Steps of a workflow, addressed by name: answer gates and waits, retry, skip."""

from exclave.api.credentials import UserOf
from exclave.api.ids import StepOf, WorkflowOf
from exclave.api.repeats import OnceOf
from exclave.api.routes import UserRoute, make_router
from exclave.control.workflows import workflows
from exclave.wire.workflows import Approve, Deny, SendEvent, SkipStep, WorkflowReply

router = make_router("/v1/workflows/{workflow}/steps/{step}", "steps", UserRoute)


@router.post("/approve", status_code=202)
async def approve_step(
    workflow: WorkflowOf, step: StepOf, body: Approve, user: UserOf, once: OnceOf
) -> WorkflowReply:
    """Approve exactly the digest that a gate shows."""
    return await once(
        WorkflowReply,
        body,
        lambda deps: workflows.approve_step(deps, user, workflow, step, body),
    )


@router.post("/deny", status_code=202)
async def deny_step(
    workflow: WorkflowOf, step: StepOf, body: Deny, user: UserOf, once: OnceOf
) -> WorkflowReply:
    """Deny a gate; with `skip`, steps that need it are skipped and the rest goes on."""
    return await once(
        WorkflowReply,
        body,
        lambda deps: workflows.deny_step(deps, user, workflow, step, body),
    )


@router.post("/retry", status_code=202)
async def retry_step(
    workflow: WorkflowOf, step: StepOf, user: UserOf, once: OnceOf
) -> WorkflowReply:
    """Retry a step that failed, was lost or was cancelled."""
    return await once(
        WorkflowReply, None, lambda deps: workflows.retry_step(deps, user, workflow, step)
    )


@router.post("/skip", status_code=202)
async def skip_step(
    workflow: WorkflowOf, step: StepOf, body: SkipStep, user: UserOf, once: OnceOf
) -> WorkflowReply:
    """Skip a step."""
    return await once(
        WorkflowReply,
        body,
        lambda deps: workflows.skip_step(deps, user, workflow, step, body.reason),
    )


@router.post("/event", status_code=202)
async def send_event(
    workflow: WorkflowOf, step: StepOf, body: SendEvent, user: UserOf, once: OnceOf
) -> WorkflowReply:
    """Answer a step that waits for an external event."""
    return await once(
        WorkflowReply,
        body,
        lambda deps: workflows.send_event(deps, user, workflow, step, body),
    )
