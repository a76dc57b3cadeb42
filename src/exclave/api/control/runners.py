"""Runners and their enrolment tokens."""

from exclave.api.credentials import DepsOf, UserOf
from exclave.api.idempotency import idempotent
from exclave.api.ids import RunnerIdOf
from exclave.api.queries import RunnersOf
from exclave.api.routes import UserRoute, make_router
from exclave.control.dispatch import runners
from exclave.domain.identity import QueueId
from exclave.wire.identity import EnrolmentCreated, NewEnrolment, RevokeRunner, RunnerReply
from exclave.wire.model import Page

router = make_router("/v1", "runners", UserRoute)


@router.post("/enrolments", status_code=201)
@idempotent(secret=True)
async def create_enrolment(body: NewEnrolment, user: UserOf, deps: DepsOf) -> EnrolmentCreated:
    """Create a one-time token, shown once, for a runner of an install or of the build queue."""
    queue = QueueId(body.queue_id)
    return await runners.create_enrolment(deps, user, queue)


@router.get("/runners")
async def list_runners(query: RunnersOf, user: UserOf, deps: DepsOf) -> Page[RunnerReply]:
    """List runners with their presence, oldest first."""
    queue = None if query.queue_id is None else QueueId(query.queue_id)
    return await runners.list_runners(deps, user, query.cursor, query.limit, queue)


@router.get("/runners/{runner}")
async def show_runner(runner: RunnerIdOf, user: UserOf, deps: DepsOf) -> RunnerReply:
    """Show a runner."""
    return await runners.show_runner(deps, user, runner)


@router.post("/runners/{runner}/revoke")
@idempotent()
async def revoke_runner(
    runner: RunnerIdOf, body: RevokeRunner, user: UserOf, deps: DepsOf
) -> RunnerReply:
    """Revoke a runner at once."""
    return await runners.revoke_runner(deps, user, runner, body.reason)
