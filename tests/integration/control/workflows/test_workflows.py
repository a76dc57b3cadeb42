"""Workflows over storage: gates, lanes between workflows, timers, retries, cancellation."""

import asyncio

import pytest
from pydantic import ValidationError

from exclave.base.errors import Conflict, Forbidden, InvalidInput, NotFound
from exclave.control.access import authenticate_user
from exclave.control.background.timers import fire_due
from exclave.control.installs import installs
from exclave.control.orgs.accounts import create_token
from exclave.control.progress import lane_turns
from exclave.control.workflows import jobs, workflows
from exclave.domain.identity import InstallId, Role
from exclave.domain.jobs import JobId
from exclave.domain.workflows import WorkflowId
from exclave.wire.envelope import open_envelope
from exclave.wire.identity import GrantModel, NewToken
from exclave.wire.jobs import OutcomeState, Reason
from exclave.wire.runner import Outcome
from exclave.wire.workflows import (
    Approve,
    Deny,
    NewStep,
    NewWorkflow,
    SendEvent,
    StepKind,
    WorkflowReply,
)
from tests.integration.control.conftest import World
from tests.integration.control.jobs_kit import FAILED, INTERRUPTED, LANE
from tests.support.world import gate, job, make_org, run_workflow, wait

PLAN_APPLY = (job("plan"), gate("ok", "plan"), job("apply", "ok", lanes=LANE, mutating=True))


async def look(world: World, made: WorkflowReply) -> WorkflowReply:
    return await workflows.show_workflow(world.deps, world.user, WorkflowId(made.id))


def states(shown: WorkflowReply) -> dict[str, str]:
    return {step.name: str(step.state) for step in shown.steps}


async def approve(world: World, made: WorkflowReply, step: str = "ok") -> WorkflowReply:
    shown = await look(world, made)
    digest = next(s.digest for s in shown.steps if s.name == step)
    return await workflows.approve_step(
        world.deps, world.user, WorkflowId(made.id), step, Approve(digest=digest)
    )


async def test_a_plan_is_applied_once_it_is_approved(world: World) -> None:
    made = await run_workflow(world.deps, world.user, world.queue, *PLAN_APPLY)
    await world.peer.work()
    waiting = await look(world, made)
    assert waiting.steps[1].waiting_for == "approval"

    await approve(world, made)
    await world.peer.work()

    shown = await look(world, made)
    assert shown.state == "succeeded"
    assert shown.steps[1].answered_by == "founder"


async def test_the_change_carries_the_digest_that_was_approved(world: World) -> None:
    digest = "sha256:" + "c" * 64
    planned = Outcome(
        state=OutcomeState.SUCCEEDED, reason=Reason.COMPLETED, outputs={"digest": digest, "add": 2}
    )
    made = await run_workflow(world.deps, world.user, world.queue, *PLAN_APPLY)
    await world.peer.work(planned)
    await approve(world, made)

    offer = (await world.peer.poll()).offers[0]
    trusted = {key.kid: key.public_key for key in world.peer.enrolled.keys}
    dispatch = open_envelope(offer.envelope, trusted)

    assert dispatch.approved_digest == digest
    assert (dispatch.mutating, dispatch.lanes) == (True, LANE)


async def test_outputs_reach_the_steps_that_need_them(world: World) -> None:
    planned = Outcome(state=OutcomeState.SUCCEEDED, reason=Reason.COMPLETED, outputs={"add": 2})
    await run_workflow(world.deps, world.user, world.queue, job("plan"), job("next", "plan"))
    await world.peer.work(planned)

    offer = (await world.peer.poll()).offers[0]

    trusted = {key.kid: key.public_key for key in world.peer.enrolled.keys}
    assert open_envelope(offer.envelope, trusted).inputs == {"plan": {"add": 2}}


async def test_a_stale_approval_is_refused(world: World) -> None:
    made = await run_workflow(world.deps, world.user, world.queue, *PLAN_APPLY)
    await world.peer.work()

    with pytest.raises(Conflict, match="another plan"):
        await workflows.approve_step(
            world.deps, world.user, WorkflowId(made.id), "ok", Approve(digest="sha256:" + "f" * 64)
        )


async def test_denial_with_skip_goes_on_without_the_change(world: World) -> None:
    made = await run_workflow(world.deps, world.user, world.queue, *PLAN_APPLY, job("other"))
    await world.peer.work()
    digest = (await look(world, made)).steps[1].digest

    shown = await workflows.deny_step(
        world.deps, world.user, WorkflowId(made.id), "ok", Deny(digest=digest, skip=True)
    )

    assert states(shown)["apply"] == "skipped"
    assert shown.state == "succeeded"


async def test_a_gate_expires(world: World) -> None:
    made = await run_workflow(world.deps, world.user, world.queue, *PLAN_APPLY)
    await world.peer.work()
    world.clock.advance(world.deps.timings.approval_s + 1)

    await fire_due(world.deps)

    shown = await look(world, made)
    assert (shown.state, shown.steps[1].reason) == ("failed", "expired")


async def test_a_timer_rings_when_its_time_has_come(world: World) -> None:
    timer = NewStep(name="nap", kind=StepKind.TIMER, delay_s=60)
    made = await run_workflow(world.deps, world.user, world.queue, timer)
    await fire_due(world.deps)
    assert (await look(world, made)).state == "running"
    world.clock.advance(61)

    await fire_due(world.deps)

    assert (await look(world, made)).state == "succeeded"


async def test_an_outside_event_answers_a_waiting_step(world: World) -> None:
    made = await run_workflow(world.deps, world.user, world.queue, wait("dns"), job("go", "dns"))

    shown = await workflows.send_event(
        world.deps, world.user, WorkflowId(made.id), "dns", SendEvent(outputs={"ip": "192.0.2.1"})
    )

    assert states(shown) == {"dns": "succeeded", "go": "active"}
    assert shown.steps[0].outputs == {"ip": "192.0.2.1"}


async def test_workflows_on_one_lane_take_turns_and_others_do_not_wait(world: World) -> None:
    first = await run_workflow(world.deps, world.user, world.queue, *PLAN_APPLY)
    second = await run_workflow(world.deps, world.user, world.queue, *PLAN_APPLY)
    other = await run_workflow(
        world.deps, world.user, world.queue, job("b", lanes=["component:b"], mutating=True)
    )
    await world.peer.work(free=8)
    assert (await look(world, other)).state == "succeeded"
    await approve(world, second)

    assert states(await look(world, second))["apply"] == "pending"
    await approve(world, first)
    await world.peer.work()

    assert (await look(world, first)).state == "succeeded"
    assert states(await look(world, second))["apply"] == "active"


async def test_a_step_tells_whose_turn_comes_first_and_what_to_do(world: World) -> None:
    first = await run_workflow(world.deps, world.user, world.queue, *PLAN_APPLY, name="first")
    second = await run_workflow(world.deps, world.user, world.queue, *PLAN_APPLY)
    await world.peer.work(free=8)
    await approve(world, second)

    waits = (await look(world, second)).steps[2]

    assert (waits.state, waits.waiting_for) == ("pending", "turn")
    assert waits.blocked_by is not None
    assert (waits.blocked_by.lane, waits.blocked_by.workflow_id) == (LANE[0], first.id)
    assert "`first`" in waits.blocked_by.message
    assert "waits for approval of `ok`" in waits.blocked_by.message
    assert f"exclave workflows approve {first.id} ok" in waits.blocked_by.hint


async def test_a_job_tells_which_lane_blocks_it_and_what_to_do(world: World) -> None:
    lost = await run_workflow(
        world.deps, world.user, world.queue, job("apply", lanes=LANE, mutating=True)
    )
    offer = (await world.peer.poll()).offers[0]
    await world.peer.start(offer.execution_id, offer.epoch)
    made = await run_workflow(world.deps, world.user, world.queue, job("plan", lanes=LANE))

    busy = (await look(world, made)).steps[0]
    await world.peer.hand_in(offer.execution_id, offer.epoch, INTERRUPTED)
    step = (await look(world, made)).steps[0]
    shown = await jobs.show_job(world.deps, world.user, JobId(step.job_id or ""))

    assert busy.blocked_by is not None
    assert f"in use by job {(await look(world, lost)).steps[0].job_id}" in busy.blocked_by.message
    assert (step.waiting_for, step.blocked_by) == ("lane", shown.blocked_by)
    assert step.blocked_by is not None
    assert step.blocked_by.workflow_id == lost.id
    assert f"`apply` of workflow {lost.id}) was lost half-way" in step.blocked_by.message
    assert f"release-lane prod {LANE[0]}" in step.blocked_by.hint


async def test_read_only_work_does_not_wait_for_an_approval(world: World) -> None:
    await run_workflow(world.deps, world.user, world.queue, *PLAN_APPLY)
    await world.peer.work()
    drift = await run_workflow(world.deps, world.user, world.queue, job("drift", lanes=LANE))

    await world.peer.work()

    assert (await look(world, drift)).state == "succeeded"


async def test_a_failed_workflow_gives_up_its_turn(world: World) -> None:
    first = await run_workflow(world.deps, world.user, world.queue, *PLAN_APPLY)
    second = await run_workflow(
        world.deps, world.user, world.queue, job("apply", lanes=LANE, mutating=True)
    )
    assert states(await look(world, second)) == {"apply": "pending"}

    await world.peer.work(FAILED)

    assert (await look(world, first)).state == "failed"
    assert states(await look(world, second)) == {"apply": "active"}


async def test_a_retried_workflow_gets_in_line_again(world: World) -> None:
    first = await run_workflow(world.deps, world.user, world.queue, *PLAN_APPLY)
    await world.peer.work(FAILED)
    second = await run_workflow(
        world.deps,
        world.user,
        world.queue,
        gate("wait"),
        job("apply", "wait", lanes=LANE, mutating=True),
    )
    await workflows.retry_step(world.deps, world.user, WorkflowId(first.id), "plan")
    await world.peer.work()
    await approve(world, first)
    assert states(await look(world, first))["apply"] == "pending"

    await approve(world, second, "wait")
    await world.peer.work()
    await world.peer.work()

    assert (await look(world, first)).state == "succeeded"


async def test_a_misspelt_step_gets_the_name_that_was_meant(world: World) -> None:
    made = await run_workflow(world.deps, world.user, world.queue, *PLAN_APPLY)

    with pytest.raises(NotFound, match="no step named `aply`") as caught:
        await workflows.retry_step(world.deps, world.user, WorkflowId(made.id), "aply")

    assert caught.value.advice == "Did you mean `apply`?"


async def test_a_lost_change_is_retried_only_after_its_lane_was_released(world: World) -> None:
    made = await run_workflow(
        world.deps, world.user, world.queue, job("apply", lanes=LANE, mutating=True)
    )
    await world.peer.work(INTERRUPTED)
    with pytest.raises(Conflict, match="needs a look first"):
        await workflows.retry_step(world.deps, world.user, WorkflowId(made.id), "apply")

    await installs.release_lane(
        world.deps, world.user, InstallId(world.queue), LANE[0], "nothing was created"
    )
    await workflows.retry_step(world.deps, world.user, WorkflowId(made.id), "apply")
    await world.peer.work()

    assert (await look(world, made)).state == "succeeded"


async def test_cancelling_ends_what_waits_and_asks_what_runs_to_stop(world: World) -> None:
    made = await run_workflow(
        world.deps,
        world.user,
        world.queue,
        job("runs"),
        job("queued", lanes=LANE),
        wait("waits"),
        job("later", "runs"),
    )
    offer = (await world.peer.poll(free=1)).offers[0]
    await world.peer.start(offer.execution_id, offer.epoch)

    shown = await workflows.cancel_workflow(world.deps, world.user, WorkflowId(made.id))
    assert states(shown) == {
        "runs": "active",
        "queued": "cancelled",
        "waits": "cancelled",
        "later": "cancelled",
    }
    cancelled = Outcome(state=OutcomeState.CANCELLED, reason=Reason.CANCELLED)
    await world.peer.hand_in(offer.execution_id, offer.epoch, cancelled)

    assert (await look(world, made)).state == "cancelled"


async def test_plan_only_changes_nothing(world: World) -> None:
    made = await run_workflow(world.deps, world.user, world.queue, *PLAN_APPLY, plan_only=True)

    await world.peer.work()

    shown = await look(world, made)
    assert (shown.state, states(shown)["apply"]) == ("succeeded", "skipped")


async def test_approve_all_needs_the_right_to_approve(world: World) -> None:
    wish = NewToken(name="op", account="op", grants=[GrantModel(role=Role.OPERATOR)])
    operator = await authenticate_user(
        world.deps, (await create_token(world.deps, world.user, wish)).token
    )
    made = await run_workflow(world.deps, operator, world.queue, *PLAN_APPLY)

    with pytest.raises(Forbidden):
        await run_workflow(world.deps, operator, world.queue, *PLAN_APPLY, approve_all=True)
    with pytest.raises(Forbidden):
        await workflows.set_approve_all(world.deps, operator, WorkflowId(made.id), on=True)


async def test_steps_that_need_each_other_are_refused(world: World) -> None:
    with pytest.raises(InvalidInput, match="a → b → a"):
        await run_workflow(world.deps, world.user, world.queue, job("a", "b"), job("b", "a"))


async def test_unknown_needs_and_doubled_names_are_refused(world: World) -> None:
    with pytest.raises(InvalidInput, match="no such step"):
        await run_workflow(world.deps, world.user, world.queue, job("a", "ghost"))
    with pytest.raises(InvalidInput, match="two steps"):
        await run_workflow(world.deps, world.user, world.queue, job("a"), job("a"))


async def test_another_org_sees_no_workflow(world: World) -> None:
    made = await run_workflow(world.deps, world.user, world.queue, *PLAN_APPLY)
    stranger = await make_org(world.deps, "evil")

    with pytest.raises(NotFound):
        await workflows.show_workflow(world.deps, stranger, WorkflowId(made.id))
    with pytest.raises(NotFound):
        await workflows.cancel_workflow(world.deps, stranger, WorkflowId(made.id))
    with pytest.raises(NotFound):
        await run_workflow(world.deps, stranger, world.queue, job("a"))


async def test_a_watcher_sees_every_change_and_the_end(world: World) -> None:
    made = await run_workflow(world.deps, world.user, world.queue, job("one"))
    seen: list[str] = []

    async def watch() -> None:
        async for shown in workflows.watch_workflow(world.deps, world.user, WorkflowId(made.id)):
            seen.append(str(shown.state))

    watching = asyncio.create_task(watch())
    await asyncio.sleep(0.01)
    await world.peer.work()
    await asyncio.wait_for(watching, 5)

    assert seen[0] == "running"
    assert seen[-1] == "succeeded"


async def test_a_step_is_not_given_more_outputs_than_a_job_may_have(world: World) -> None:
    names = [f"part-{number}" for number in range(5)]
    steps = [*(job(name) for name in names), job("all", *names)]
    made = await run_workflow(world.deps, world.user, world.queue, *steps)
    large = Outcome(
        state=OutcomeState.SUCCEEDED, reason=Reason.COMPLETED, outputs={"text": "x" * 500_000}
    )
    while (await look(world, made)).state == "running":
        await world.peer.work(large)

    shown = await look(world, made)

    assert (shown.steps[-1].state, shown.steps[-1].reason) == ("failed", "render_failed")
    assert "larger than" in shown.steps[-1].message


def test_a_workflow_is_no_thicket() -> None:
    names = [f"s{number}" for number in range(102)]
    steps = [job(name, *names[:at]) for at, name in enumerate(names)]

    with pytest.raises(ValidationError, match="5151 needs; at most 2000"):
        NewWorkflow(name="w", queue_id="ins_" + "0" * 26, steps=steps)
    with pytest.raises(ValidationError, match="at most 200"):
        NewWorkflow(name="w", queue_id="ins_" + "0" * 26, steps=[job(f"s{n}") for n in range(201)])
    lanes = [[f"component:c{n}-{k}" for k in range(20)] for n in range(6)]
    with pytest.raises(ValidationError, match="120 lanes; at most 100"):
        NewWorkflow(
            name="w",
            queue_id="ins_" + "0" * 26,
            steps=[job(f"s{n}", lanes=each, mutating=True) for n, each in enumerate(lanes)],
        )


async def test_only_so_many_workflows_wait_for_the_lanes_of_an_install(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lane_turns, "MOST_TICKETS", 1)
    for _ in range(2):
        await run_workflow(world.deps, world.user, world.queue, *PLAN_APPLY)

    with pytest.raises(lane_turns.Crowded):
        await run_workflow(world.deps, world.user, world.queue, *PLAN_APPLY)

    made = await run_workflow(world.deps, world.user, world.queue, job("look"))
    assert made.state == "running"


async def test_steps_on_many_lanes_each_tell_their_own(world: World) -> None:
    lanes = [f"component:c{number}" for number in range(5)]
    steps = [job(f"s{at}", lanes=[lane], mutating=True) for at, lane in enumerate(lanes)]
    first = await run_workflow(
        world.deps,
        world.user,
        world.queue,
        job("look"),
        gate("ok", "look"),
        *(job(f"s{at}", "ok", lanes=[lane], mutating=True) for at, lane in enumerate(lanes)),
    )
    await world.peer.work()

    second = await run_workflow(world.deps, world.user, world.queue, *steps)

    blockers = [step.blocked_by for step in (await look(world, second)).steps]
    told = [each and (each.lane, each.workflow_id) for each in blockers]
    assert told == [(lane, first.id) for lane in lanes]
    assert all(each and f"on lane {each.lane}, and waits" in each.message for each in blockers)
