"""Workflows: create, list, watch, and act on them. Each action is one event in one transaction."""

from collections.abc import AsyncIterator, Mapping, Sequence

from exclave.base.digests import digest_json
from exclave.base.errors import Conflict, Forbidden, NotFound, Problem
from exclave.base.loop_time import give_way
from exclave.control.access import require_on, require_there
from exclave.control.deps import Deps
from exclave.control.dispatch.direct_offers import DirectOffer
from exclave.control.four_eyes import (
    refuse_approve_all,
    refuse_own_work,
    require_approve_all,
)
from exclave.control.pagination import clamp, make_page
from exclave.control.progress.advance import begin_new
from exclave.control.progress.lane_turns import refuse_crowd
from exclave.control.workflows import replies
from exclave.control.workflows.blockers import find_step_blockers
from exclave.control.workflows.new_workflow import Planned, plan_workflow
from exclave.control.workflows.step_actions import StepAction, apply_action, find_step, for_step
from exclave.domain.four_eyes import SecondPersonNeeded
from exclave.domain.identity import OrgId, QueueId, Right, User
from exclave.domain.intents import ApplyPart, read_intent
from exclave.domain.quotas import Stored
from exclave.domain.workflow_records import StepRecord, WorkflowRecord
from exclave.domain.workflows import (
    Step,
    StepKind,
    StepState,
    Workflow,
    WorkflowId,
    WorkflowState,
)
from exclave.flow.events import (
    Answered,
    ApproveAllSet,
    Approved,
    CancelRequested,
    Denied,
    Event,
    Retried,
    Skipped,
)
from exclave.storage import queues, steps, workflows
from exclave.storage.engine.database import Tx
from exclave.storage.usage import Account, Amount, note_growth
from exclave.wire.jobs import Blocker
from exclave.wire.model import Page
from exclave.wire.workflows import (
    Approve,
    Deny,
    NewWorkflow,
    SendEvent,
    WorkflowReply,
    WorkflowSummary,
)

_PUT_GATE = "Put a step of kind `gate` before it; who may approve answers that."
_MANY_STEPS = 50
"""The reply for more takes long enough that others run before it is built."""
_LONGEST_WAIT_S = 15.0
"""A watcher reads the workflow again after this time, in case a wake-up was lost."""


async def create_workflow(deps: Deps, user: User, body: NewWorkflow) -> WorkflowReply:
    """Store a workflow with its steps, take its turns on lanes, start it, and return it."""
    workflow = await begin_workflow(deps, user, body)
    return await show_workflow(deps, user, workflow)


async def begin_workflow(deps: Deps, user: User, body: NewWorkflow) -> WorkflowId:
    """Create a workflow and return only its id."""
    await require_there(deps, user, Right.OPERATE, body.queue_id)
    if body.approve_all:
        await deps.db.read(lambda tx: require_approve_all(tx, user, body.queue_id))
    made = plan_workflow(user, WorkflowId(deps.ids.new("wfl")), body)
    if len(body.steps) > _MANY_STEPS:
        await give_way()
    if made.unguarded:
        await _refuse_unguarded(deps, user, made)
    deps.exhausted_quotas.begin_work(deps.quotas, user.org)
    new = made.workflow
    if new.is_laned:
        await deps.db.read(lambda tx: refuse_crowd(tx, user.org, new.queue), alone=True)
    await deps.db.write_each(_begin_all, (deps, made), key=body.queue_id)
    return new.id


async def _refuse_unguarded(deps: Deps, user: User, made: Planned) -> None:
    """Refuse scripts before any gate to users who may not approve, and to all under four eyes.

    Whether the org requires four eyes was read with the token, so no workflow costs another query;
    a request that arrived before the switch counts as earlier than it.
    """
    names = list(made.unguarded)
    problem = f"step `{names[0]}` runs without anybody's approval"
    if user.four_eyes:
        raise SecondPersonNeeded(
            f"{problem}, and this org asks for four eyes", hint=_PUT_GATE, steps=names[:20]
        )
    try:
        await require_there(deps, user, Right.APPROVE, made.workflow.queue)
    except Forbidden:
        raise Forbidden(
            f"{problem}, which needs the right to approve",
            hint=_PUT_GATE,
            right=Right.APPROVE,
            steps=names[:20],
        ) from None


def _begin_all(tx: Tx, requests: Sequence[tuple[Deps, Planned]]) -> Sequence[Problem | None]:
    """Store and start workflows that arrived together, and offer their jobs to waiting polls."""
    deps = requests[0][0]
    sizes = {made.workflow.id: made.size for _, made in requests}
    asked = [made.workflow for _, made in requests]
    wanted = sorted({(new.org, new.queue) for new in asked})
    direct_offers = [DirectOffer(tx, deps, *key) for key in wanted]
    for direct_offer in direct_offers:
        direct_offer.look_ahead()
    known = {key for key in wanted if queues.find_queue(tx, *key) is not None}
    good = [new for new in asked if (new.org, new.queue) in known]
    workflows.add_workflows(tx, good)
    for new in good:
        note_growth(tx, Account(new.org, Stored.DOCUMENTS), Amount(sizes[new.id], 1))
    begin_new(tx, deps, [workflows.lock_new(tx, new) for new in good])
    for direct_offer in direct_offers:
        direct_offer.finish()
    return [
        None
        if (new.org, new.queue) in known
        else NotFound("there is no such install or build queue")
        for new in asked
    ]


async def list_workflows(
    deps: Deps, user: User, *, cursor: str, limit: int, queue: str | None, state: str | None
) -> Page[WorkflowSummary]:
    """List workflows, newest first."""
    await require_there(deps, user, Right.READ, queue)
    wanted = clamp(limit)
    rows = await deps.db.read(
        lambda tx: workflows.list_workflows(
            tx, user.org, before=cursor, limit=wanted + 1, queue=queue, state=state
        )
    )
    return make_page(rows, wanted, replies.summarise_workflow)


async def show_workflow(deps: Deps, user: User, workflow: WorkflowId) -> WorkflowReply:
    """Return a workflow with its steps."""

    def read(tx: Tx) -> tuple[WorkflowRecord, Sequence[StepRecord], Mapping[int, Blocker]]:
        record, own_steps = workflows.find_with_steps(tx, user.org, workflow)
        record = _check(tx, user, record, Right.READ)
        return record, own_steps, find_step_blockers(tx, deps, user.org, record, own_steps)

    record, own_steps, blockers = await deps.db.read(read)
    if len(own_steps) > _MANY_STEPS:
        await give_way()
    return replies.show_workflow(record, own_steps, blockers)


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
    """Approve a gate for exactly the digest that it shows."""

    def make_event(tx: Tx, queue: QueueId, value: Workflow) -> Event:
        del queue
        refuse_own_work(tx, user, value)
        return Approved(find_step(value, step).index, answer.digest)

    return await _apply_and_show(
        deps,
        user,
        StepAction(
            workflow,
            Right.APPROVE,
            "step_approved",
            make_event,
            step=step,
            note=answer.comment,
        ),
    )


async def deny_step(
    deps: Deps, user: User, workflow: WorkflowId, step: str, answer: Deny
) -> WorkflowReply:
    """Deny a gate; with `skip`, skip the steps that need it."""
    make_event = for_step(
        step, lambda target: Denied(target.index, answer.digest, skip=answer.skip)
    )
    return await _apply_and_show(
        deps,
        user,
        StepAction(
            workflow,
            Right.APPROVE,
            "step_denied",
            make_event,
            step=step,
            note=answer.comment,
        ),
    )


async def retry_step(deps: Deps, user: User, workflow: WorkflowId, step: str) -> WorkflowReply:
    """Retry a step, unless a lane of it still needs reconciliation after a lost job.

    An apply is never retried alone: its plan is made and approved again first.
    """

    def make_event(tx: Tx, queue: QueueId, value: Workflow) -> Event:
        target = find_step(value, step)
        _refuse_unsure(tx, user.org, queue, target)
        spec = steps.load_specs(tx, (user.org, value.id), [target.index])[target.index]
        stored = read_intent(spec)
        if stored is None or not isinstance(stored.intent, ApplyPart):
            return Retried(target.index)
        plan = find_step(value, stored.intent.plan)
        return Retried(plan.index, lost=target.state is StepState.LOST)

    return await _apply_and_show(
        deps, user, StepAction(workflow, Right.OPERATE, "step_retried", make_event, step=step)
    )


def _refuse_unsure(tx: Tx, org: OrgId, queue: QueueId, step: Step) -> None:
    unsure = queues.list_lanes_to_reconcile(tx, org, queue, step.lanes) if step.lanes else ()
    if unsure:
        raise Conflict(
            f"lane `{unsure[0]}` needs a look first: a job on it was lost half-way",
            hint="Check what it left behind (`exclave installs orphans`), then release the lane:"
            f" `exclave installs release-lane {queue} {unsure[0]} --reason …`.",
            lanes=list(unsure),
        )


async def skip_step(
    deps: Deps, user: User, workflow: WorkflowId, step: str, reason: str
) -> WorkflowReply:
    """Skip a step."""
    make_event = for_step(step, lambda target: Skipped(target.index, reason))
    return await _apply_and_show(
        deps,
        user,
        StepAction(workflow, Right.OPERATE, "step_skipped", make_event, step=step, note=reason),
    )


async def send_event(
    deps: Deps, user: User, workflow: WorkflowId, step: str, event: SendEvent
) -> WorkflowReply:
    """Answer a step that waits for an external event, and return the workflow."""
    await answer_wait(deps, user, workflow, step, event)
    return await show_workflow(deps, user, workflow)


async def answer_wait(
    deps: Deps, user: User, workflow: WorkflowId, step: str, event: SendEvent
) -> None:
    """Answer a step that waits for an external event."""
    digest = digest_json(event.outputs)

    def check(tx: Tx, queue: QueueId, target: Step) -> None:
        del tx, queue
        if target.kind is not StepKind.WAIT:
            raise Conflict(f"step `{step}` waits for no event")

    make_event = for_step(
        step, lambda target: Answered(target.index, target.attempt, digest), check
    )
    await apply_action(
        deps,
        user,
        StepAction(
            workflow,
            Right.OPERATE,
            "event_sent",
            make_event,
            step=step,
            outputs=event.outputs,
        ),
    )


async def cancel_workflow(deps: Deps, user: User, workflow: WorkflowId) -> WorkflowReply:
    """Cancel a workflow: running jobs are stopped, the other steps never start."""
    action = StepAction(workflow, Right.OPERATE, "cancel_requested", lambda *_: CancelRequested())
    return await _apply_and_show(deps, user, action)


async def set_approve_all(
    deps: Deps, user: User, workflow: WorkflowId, *, on: bool
) -> WorkflowReply:
    """Switch automatic approval of open and future gates on or off."""
    action = "approve_all_on" if on else "approve_all_off"

    def make_event(tx: Tx, queue: QueueId, value: Workflow) -> Event:
        del queue, value
        if on:
            refuse_approve_all(tx, user.org)
        return ApproveAllSet(on)

    return await _apply_and_show(
        deps, user, StepAction(workflow, Right.APPROVE, action, make_event)
    )


async def _apply_and_show(deps: Deps, user: User, action: StepAction) -> WorkflowReply:
    await apply_action(deps, user, action)
    return await show_workflow(deps, user, action.workflow)


def _check(tx: Tx, user: User, record: WorkflowRecord | None, right: Right) -> WorkflowRecord:
    if record is None:
        raise NotFound("there is no such workflow")
    require_on(tx, user, right, record.queue_id, noun="workflow")
    return record
