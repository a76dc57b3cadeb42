"""Workflows: create, look at, answer, steer. Every call is one event in one transaction."""

from collections.abc import AsyncIterator

from exclave.base.digests import digest_json
from exclave.base.errors import Conflict, InvalidInput, NotFound
from exclave.control import showing
from exclave.control.access import require
from exclave.control.advance import Happening, advance
from exclave.control.deps import Deps
from exclave.control.pages import clamp, make_page
from exclave.control.steering import Wish, aim_at, steer
from exclave.domain.identity import QueueId, Right, User
from exclave.domain.workflows import Step, StepKind, StepState, WorkflowId, WorkflowState
from exclave.flow.events import (
    Answered,
    ApproveAllSet,
    Approved,
    CancelRequested,
    Denied,
    Retried,
    Skipped,
)
from exclave.flow.graph import resolve_needs
from exclave.storage import queues, workflows
from exclave.storage.database import AnyRow, Tx
from exclave.wire.model import Page
from exclave.wire.workflows import (
    Approve,
    Deny,
    NewWorkflow,
    SendEvent,
    WorkflowReply,
    WorkflowSummary,
)

_LONGEST_WAIT_S = 15.0
"""A watcher looks again after this time even if nobody woke it."""


async def create_workflow(deps: Deps, user: User, wish: NewWorkflow) -> WorkflowReply:
    """Store a workflow with all its steps, take its turns on lanes, and begin."""
    require(user, Right.OPERATE, wish.queue_id)
    if wish.approve_all:
        require(user, Right.APPROVE, wish.queue_id)
    workflow = WorkflowId(deps.ids.new("wfl"))

    def create(tx: Tx) -> None:
        add_workflow(tx, user, workflow, wish)
        advance(tx, deps, [Happening(user.org, workflow)])

    await deps.db.write(create, key=wish.queue_id)
    return await show_workflow(deps, user, workflow)


def add_workflow(tx: Tx, user: User, workflow: WorkflowId, wish: NewWorkflow) -> None:
    """Store a workflow whose steps are all still to come."""
    queue = QueueId(wish.queue_id)
    if queues.find_queue(tx, user.org, queue) is None:
        raise NotFound("there is no such install or build queue")
    names = [step.name for step in wish.steps]
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        raise InvalidInput(f"two steps are named `{doubled[0]}`", hint="Give each its own name.")
    needs = resolve_needs({step.name: step.needs for step in wish.steps})
    row = {
        "org_id": user.org, "id": workflow, "queue_id": queue, "name": wish.name,
        "state": WorkflowState.RUNNING, "approve_all": wish.approve_all,
        "plan_only": wish.plan_only, "cancel_requested": False, "revision": 1,
        "laned": any(step.mutating for step in wish.steps), "labels": wish.labels,
        "created_by": user.name,
    }  # fmt: skip
    step_rows = [
        {
            "org_id": user.org, "workflow_id": workflow, "position": position,
            "name": step.name, "kind": step.kind, "state": StepState.PENDING,
            "needs": ",".join(map(str, needs[step.name])), "lanes": ",".join(step.lanes),
            "mutating": step.mutating, "outputs": {},
            "spec": {
                "job": None if step.job is None else step.job.model_dump(mode="json"),
                "priority": step.priority, "delay_s": step.delay_s,
            },
        }
        for position, step in enumerate(wish.steps)
    ]  # fmt: skip
    workflows.add_workflow(tx, row, step_rows)


async def list_workflows(
    deps: Deps, user: User, *, cursor: str, limit: int, queue: str | None, state: str | None
) -> Page[WorkflowSummary]:
    """List workflows, newest first."""
    require(user, Right.READ, queue)
    wanted = clamp(limit)
    rows = await deps.db.read(
        lambda tx: workflows.list_workflows(
            tx, user.org, before=cursor, limit=wanted + 1, queue=queue, state=state
        )
    )
    return make_page(rows, wanted, showing.summarise_workflow)


async def show_workflow(deps: Deps, user: User, workflow: WorkflowId) -> WorkflowReply:
    """Show a workflow with its steps."""

    def show(tx: Tx) -> WorkflowReply:
        row = _find(tx, user, workflow, Right.READ)
        return showing.show_workflow(row, workflows.list_steps(tx, user.org, workflow))

    return await deps.db.read(show)


async def watch_workflow(
    deps: Deps, user: User, workflow: WorkflowId
) -> AsyncIterator[WorkflowReply]:
    """Yield the workflow now and after each change, until it has ended."""
    seen: WorkflowReply | None = None
    with deps.hub.watch(f"workflow:{workflow}") as watch:
        while True:
            reply = await show_workflow(deps, user, workflow)
            if reply != seen:
                yield reply
            seen = reply
            if reply.state is not WorkflowState.RUNNING or deps.hub.closed:
                return
            await watch.wait(_LONGEST_WAIT_S)


async def approve_step(
    deps: Deps, user: User, workflow: WorkflowId, step: str, answer: Approve
) -> WorkflowReply:
    """Approve exactly the digest that a gate shows."""
    aim = aim_at(step, lambda found: Approved(found.index, answer.digest))
    return await _steer(deps, user, Wish(
        workflow, Right.APPROVE, "step_approved", aim, step=step, note=answer.comment,
    ))  # fmt: skip


async def deny_step(
    deps: Deps, user: User, workflow: WorkflowId, step: str, answer: Deny
) -> WorkflowReply:
    """Refuse a gate, and with `skip` leave out what needs it."""
    aim = aim_at(step, lambda found: Denied(found.index, answer.digest, skip=answer.skip))
    return await _steer(deps, user, Wish(
        workflow, Right.APPROVE, "step_denied", aim, step=step, note=answer.comment,
    ))  # fmt: skip


async def retry_step(deps: Deps, user: User, workflow: WorkflowId, step: str) -> WorkflowReply:
    """Do a step again, unless what a lost job left behind has not been looked at."""

    def check(tx: Tx, queue: QueueId, found: Step) -> None:
        unsure = queues.needs_reconcile(tx, user.org, queue, found.lanes) if found.lanes else ()
        if unsure:
            raise Conflict(
                f"lane `{unsure[0]}` needs a look first: a job on it was lost half-way",
                hint="Check what it left behind, then release the lane with your reason.",
                lanes=list(unsure),
            )

    aim = aim_at(step, lambda found: Retried(found.index), check)
    return await _steer(deps, user, Wish(workflow, Right.OPERATE, "step_retried", aim, step=step))


async def skip_step(
    deps: Deps, user: User, workflow: WorkflowId, step: str, reason: str
) -> WorkflowReply:
    """Go on without a step."""
    aim = aim_at(step, lambda found: Skipped(found.index, reason))
    return await _steer(
        deps, user, Wish(workflow, Right.OPERATE, "step_skipped", aim, step=step, note=reason)
    )


async def send_event(
    deps: Deps, user: User, workflow: WorkflowId, step: str, event: SendEvent
) -> WorkflowReply:
    """Answer a step that waits for the outside world."""
    await answer_wait(deps, user, workflow, step, event)
    return await show_workflow(deps, user, workflow)


async def answer_wait(
    deps: Deps, user: User, workflow: WorkflowId, step: str, event: SendEvent
) -> None:
    """Answer a waiting step without looking at what became of the workflow."""
    digest = digest_json(event.outputs)

    def check(tx: Tx, queue: QueueId, found: Step) -> None:
        del tx, queue
        if found.kind is not StepKind.WAIT:
            raise Conflict(f"step `{step}` waits for no event")

    aim = aim_at(step, lambda found: Answered(found.index, found.attempt, digest), check)
    await steer(deps, user, Wish(
        workflow, Right.OPERATE, "event_sent", aim, step=step, outputs=event.outputs,
    ))  # fmt: skip


async def cancel_workflow(deps: Deps, user: User, workflow: WorkflowId) -> WorkflowReply:
    """Ask for the end of a workflow; running jobs are stopped, the rest never begins."""
    wish = Wish(workflow, Right.OPERATE, "cancel_requested", lambda *_: CancelRequested())
    return await _steer(deps, user, wish)


async def set_approve_all(
    deps: Deps, user: User, workflow: WorkflowId, *, on: bool
) -> WorkflowReply:
    """Switch automatic approval of open and coming gates."""
    action = "approve_all_on" if on else "approve_all_off"
    return await _steer(
        deps, user, Wish(workflow, Right.APPROVE, action, lambda *_: ApproveAllSet(on))
    )


async def _steer(deps: Deps, user: User, wish: Wish) -> WorkflowReply:
    await steer(deps, user, wish)
    return await show_workflow(deps, user, wish.workflow)


def _find(tx: Tx, user: User, workflow: WorkflowId, right: Right) -> AnyRow:
    row = workflows.find_workflow(tx, user.org, workflow)
    if row is None:
        raise NotFound("there is no such workflow")
    require(user, right, row.queue_id)
    return row
