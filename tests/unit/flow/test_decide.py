"""What a workflow does next, by example."""

import pytest

from exclave.base.errors import Conflict
from exclave.domain.jobs import JobState
from exclave.domain.workflows import Step, StepKind, StepState, Workflow, WorkflowId, WorkflowState
from exclave.flow.decide import Effect, StepEffect, decide, gate_digest, lanes_wanted
from exclave.flow.events import (
    Answered,
    ApproveAllSet,
    Approved,
    CancelRequested,
    Denied,
    Event,
    JobEnded,
    Retried,
    Skipped,
    apply_event,
)

A, B = "sha256:" + "a" * 64, "sha256:" + "b" * 64


def flow(*steps: Step, **facts: bool) -> Workflow:
    placed = tuple(
        Step(index, s.name, s.kind, s.state, s.needs, s.lanes, s.mutating)
        for index, s in enumerate(steps)
    )
    return Workflow(WorkflowId("wfl_1"), WorkflowState.RUNNING, placed, **facts)


def step(
    name: str,
    *needs: int,
    kind: StepKind = StepKind.JOB,
    lanes: tuple[str, ...] = (),
) -> Step:
    return Step(0, name, kind, StepState.PENDING, needs, lanes, mutating=bool(lanes))


def go(workflow: Workflow, *events: Event, blocked: tuple[str, ...] = ()) -> Workflow:
    workflow = decide(workflow, blocked).workflow
    for event in events:
        workflow = decide(apply_event(workflow, event), blocked).workflow
    return workflow


def states(workflow: Workflow) -> list[str]:
    return [str(s.state) for s in workflow.steps]


def done(index: int, state: JobState = JobState.SUCCEEDED, digest: str = A) -> JobEnded:
    return JobEnded(index, 0, state, digest)


PLAN_APPLY = (
    step("plan"),
    step("ok", 0, kind=StepKind.GATE),
    step("apply", 1, lanes=("component:a",)),
)


def test_steps_without_needs_start_together_and_only_once() -> None:
    first = decide(flow(step("a"), step("b"), step("c", 0, 1)))

    assert first.effects == (StepEffect(Effect.START_JOB, 0), StepEffect(Effect.START_JOB, 1))
    assert decide(first.workflow).effects == ()


def test_a_step_waits_for_all_its_needs() -> None:
    workflow = go(flow(step("a"), step("b"), step("c", 0, 1)), done(0))

    assert states(workflow) == ["succeeded", "active", "pending"]


def test_a_failed_step_stops_its_dependents_only() -> None:
    workflow = go(
        flow(step("a"), step("b"), step("after-a", 0), step("after-b", 1)),
        done(0, JobState.FAILED),
        done(1),
        done(3),
    )

    assert states(workflow) == ["failed", "succeeded", "pending", "succeeded"]
    assert workflow.state is WorkflowState.FAILED


def test_a_gate_asks_about_the_digest_of_the_step_before_it() -> None:
    workflow = go(flow(*PLAN_APPLY), done(0))

    assert workflow.steps[1].digest == A
    assert states(workflow) == ["succeeded", "active", "pending"]


def test_a_gate_over_several_steps_asks_about_all_of_them() -> None:
    one = go(flow(step("a"), step("b"), step("ok", 0, 1, kind=StepKind.GATE)), done(0), done(1))
    other = go(
        flow(step("a"), step("b"), step("ok", 0, 1, kind=StepKind.GATE)), done(0), done(1, digest=B)
    )

    assert gate_digest(one, one.steps[2]) != gate_digest(other, other.steps[2])


def test_approving_another_digest_is_refused() -> None:
    workflow = go(flow(*PLAN_APPLY), done(0))

    with pytest.raises(Conflict, match="another plan"):
        apply_event(workflow, Approved(1, B))


def test_approving_twice_changes_nothing() -> None:
    workflow = go(flow(*PLAN_APPLY), done(0), Approved(1, A))

    assert apply_event(workflow, Approved(1, A)) is workflow


def test_denying_after_approval_is_refused() -> None:
    workflow = go(flow(*PLAN_APPLY), done(0), Approved(1, A))

    with pytest.raises(Conflict, match="not open"):
        apply_event(workflow, Denied(1, A))


def test_a_gate_that_was_opened_again_does_not_expire_with_its_first_opening() -> None:
    failed = go(flow(*PLAN_APPLY), done(0), Denied(1, A, reason="expired", attempt=0))
    opened = go(failed, Retried(0), JobEnded(0, 1, JobState.SUCCEEDED, A))

    assert opened.steps[1].state is StepState.ACTIVE
    assert go(opened, Denied(1, A, reason="expired", attempt=0)) == opened
    assert go(opened, Denied(1, A, reason="expired", attempt=1)).steps[1].reason == "expired"


def test_denial_fails_the_workflow() -> None:
    workflow = go(flow(*PLAN_APPLY), done(0), Denied(1, A))

    assert states(workflow) == ["succeeded", "failed", "pending"]
    assert workflow.state is WorkflowState.FAILED


def test_denial_with_skip_leaves_out_the_dependents_and_goes_on() -> None:
    steps = (*PLAN_APPLY, step("after", 2), step("other"))
    workflow = go(flow(*steps), done(0), Denied(1, A, skip=True), done(4))

    assert states(workflow) == ["succeeded", "skipped", "skipped", "skipped", "succeeded"]
    assert workflow.state is WorkflowState.SUCCEEDED


def test_approve_all_in_mid_run_answers_the_open_gate() -> None:
    workflow = go(flow(*PLAN_APPLY), done(0), ApproveAllSet(on=True))

    assert states(workflow) == ["succeeded", "succeeded", "active"]
    assert workflow.steps[1].reason == "approve_all"


def test_plan_only_skips_gates_and_changes() -> None:
    workflow = go(flow(*PLAN_APPLY, plan_only=True), done(0))

    assert states(workflow) == ["succeeded", "skipped", "skipped"]
    assert workflow.state is WorkflowState.SUCCEEDED
    assert lanes_wanted(flow(*PLAN_APPLY, plan_only=True)) == frozenset()


def test_a_change_waits_while_an_earlier_workflow_wants_its_lane() -> None:
    steps = flow(step("apply", lanes=("component:a",)), step("plan"))
    workflow = go(steps, done(1), blocked=("component:a",))

    assert states(workflow) == ["pending", "succeeded"]
    assert workflow.state is WorkflowState.RUNNING
    assert states(go(workflow)) == ["active", "succeeded"]


def test_the_sandbox_lane_excludes_every_other() -> None:
    workflow = go(flow(step("apply", lanes=("component:a",))), blocked=("sandbox",))

    assert states(workflow) == ["pending"]


def test_retry_runs_a_failed_step_and_what_follows() -> None:
    workflow = go(flow(step("a"), step("b", 0)), done(0, JobState.FAILED), Retried(0))

    assert states(workflow) == ["active", "pending"]
    assert workflow.steps[0].attempt == 1
    assert workflow.state is WorkflowState.RUNNING


def test_a_late_ending_of_an_earlier_attempt_changes_nothing() -> None:
    workflow = go(flow(step("a")), done(0, JobState.FAILED), Retried(0), done(0))

    assert states(workflow) == ["active"]


def test_planning_again_closes_the_gate_that_was_open() -> None:
    workflow = go(flow(*PLAN_APPLY), done(0), Retried(0))

    assert states(workflow) == ["active", "pending", "pending"]


def test_planning_again_after_the_change_is_refused() -> None:
    workflow = go(flow(*PLAN_APPLY), done(0), Approved(1, A), done(2))

    with pytest.raises(Conflict, match="already built on"):
        apply_event(workflow, Retried(0))


def test_a_successful_change_is_not_retried() -> None:
    workflow = go(flow(step("apply", lanes=("component:a",))), done(0))

    with pytest.raises(Conflict, match="succeeded"):
        apply_event(workflow, Retried(0))


def test_skipping_a_failed_step_lets_the_rest_go_on() -> None:
    workflow = go(flow(step("a"), step("b", 0)), done(0, JobState.FAILED), Skipped(0, "known"))

    assert states(workflow) == ["skipped", "active"]


def test_a_gate_cannot_be_skipped_past() -> None:
    workflow = go(flow(*PLAN_APPLY), done(0))

    with pytest.raises(Conflict, match="answered, not skipped"):
        apply_event(workflow, Skipped(1, "in a hurry"))


def test_cancel_stops_jobs_and_ends_when_they_have_stopped() -> None:
    workflow = go(flow(step("a"), step("b", 0)))
    stopping = decide(apply_event(workflow, CancelRequested()))

    assert stopping.effects == (StepEffect(Effect.CANCEL_JOB, 0),)
    assert stopping.workflow.state is WorkflowState.RUNNING
    ended = go(stopping.workflow, done(0, JobState.CANCELLED))
    assert states(ended) == ["cancelled", "cancelled"]
    assert ended.state is WorkflowState.CANCELLED


def test_cancelling_a_cancelled_workflow_changes_nothing() -> None:
    workflow = go(flow(step("w", kind=StepKind.WAIT)), CancelRequested())

    assert apply_event(workflow, CancelRequested()) is workflow


def test_a_cancelled_workflow_accepts_no_skip_and_no_retry() -> None:
    workflow = go(flow(step("a")), CancelRequested(), done(0, JobState.CANCELLED))

    for event in (Skipped(0, "why"), Retried(0)):
        with pytest.raises(Conflict, match="cancelled"):
            apply_event(workflow, event)


def test_an_event_answers_a_waiting_step_once() -> None:
    workflow = go(flow(step("w", kind=StepKind.WAIT)), Answered(0, 0))

    assert workflow.state is WorkflowState.SUCCEEDED
    assert apply_event(workflow, Answered(0, 0)) is workflow


def test_a_lost_change_fails_the_workflow_and_can_be_retried() -> None:
    workflow = go(flow(step("apply", lanes=("component:a",))), done(0, JobState.LOST))

    assert states(workflow) == ["lost"]
    assert workflow.state is WorkflowState.FAILED
    assert states(go(workflow, Retried(0))) == ["active"]
