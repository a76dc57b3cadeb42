"""Apply events to workflows: load them locked, decide, save, and enqueue jobs, in batches."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from exclave.base.errors import Problem
from exclave.control.deps import Deps
from exclave.control.progress import lane_turns
from exclave.control.progress.cancel_jobs import cancel_jobs
from exclave.control.progress.install_endings import end_install_workflow
from exclave.control.progress.step_jobs import start_jobs
from exclave.control.progress.workflow_changes import NO_ANSWER, Answer, Change, apply_to
from exclave.control.progress.workflow_events import WorkflowEvent
from exclave.domain.jobs import JobId
from exclave.domain.workflows import Step, StepState, WorkflowKey, WorkflowState, read_spec
from exclave.flow.decide import Effect, decide
from exclave.storage import step_changes, steps, workflows
from exclave.storage.engine.database import Tx
from exclave.storage.step_changes import BegunStep, EndedStep, ResetStep
from exclave.storage.workflows import Loaded


def begin_new(tx: Tx, deps: Deps, new: Sequence[Loaded]) -> None:
    """Start workflows that this transaction stores."""
    changes = [Change(loaded, loaded.value) for loaded in new]
    follow = _decide(tx, deps, changes)
    if follow:
        advance(tx, deps, follow)


def advance(tx: Tx, deps: Deps, events: Sequence[WorkflowEvent]) -> list[Problem | None]:
    """Apply events and everything that follows from them; return the problem of each, or None.

    Whatever an event sets free (a job that was cancelled before it ran, a lane that another
    workflow waits for) is worked off in the same transaction.
    """
    answers, follow = _advance_once(tx, deps, events)
    while follow:
        _, follow = _advance_once(tx, deps, follow)
    return answers


def _advance_once(
    tx: Tx, deps: Deps, events: Sequence[WorkflowEvent]
) -> tuple[list[Problem | None], list[WorkflowEvent]]:
    loaded = workflows.load_locked(tx, [incoming.key for incoming in events])
    changes = {key: Change(item, item.value) for key, item in loaded.items()}
    answers = [apply_to(tx, changes.get(incoming.key), incoming) for incoming in events]
    return answers, _decide(tx, deps, list(changes.values()))


def _decide(tx: Tx, deps: Deps, changes: Sequence[Change]) -> list[WorkflowEvent]:
    for change in changes:
        blocked = lane_turns.find_blocked(tx, change.before, change.after)
        progress = decide(change.after, blocked)
        change.after, change.moves = progress.workflow, progress.effects
    return _save(tx, deps, changes)


def _save(tx: Tx, deps: Deps, changes: Sequence[Change]) -> list[WorkflowEvent]:
    moved = [change for change in changes if change.moves or change.after != change.before.value]
    _end_steps(tx, moved)
    follow: list[WorkflowEvent] = []
    started = start_jobs(tx, deps, moved, follow)
    _begin_steps(tx, deps, moved, started)
    workflows.save_workflows(tx, [_make_after(change, started) for change in moved])
    for change in moved:
        tx.wake(f"workflow:{change.after.id}")
        if change.before.kind and change.after.state is not WorkflowState.RUNNING:
            before = change.before
            end_install_workflow(
                tx, deps, before.org, before.queue, before.kind, change.after.state
            )
        follow += cancel_jobs(tx, change)
        freed = lane_turns.release_turns(tx, change.before, change.after)
        follow += [WorkflowEvent(change.before.org, workflow) for workflow in freed]
    return follow


def _end_steps(tx: Tx, changes: Sequence[Change]) -> None:
    """Store steps that ended or are retried, before the steps that depend on them begin."""
    reset: list[ResetStep] = []
    ended: list[EndedStep] = []
    for change in changes:
        key = (change.before.org, change.after.id)
        for old, new in zip(change.before.value.steps, change.after.steps, strict=True):
            if new is old or new == old:
                continue
            if new.attempt != old.attempt:
                reset.append(ResetStep(*key, new.index, new.attempt))
            if new.state.is_over:
                ended.append(_make_ended(key, new, change.answers.get(new.index, NO_ANSWER)))
    step_changes.reset_steps(tx, reset)
    step_changes.end_steps(tx, ended)


def _make_ended(key: WorkflowKey, step: Step, answer: Answer) -> EndedStep:
    return EndedStep(
        *key,
        position=step.index,
        state=step.state,
        digest=step.digest,
        reason=step.reason,
        message=answer.message,
        outputs=answer.outputs,
        answered_by=answer.by,
    )


def _begin_steps(
    tx: Tx, deps: Deps, changes: Sequence[Change], started: Mapping[tuple[WorkflowKey, int], JobId]
) -> None:
    begun: list[BegunStep] = []
    for change in changes:
        key = (change.before.org, change.after.id)
        due = _find_due(tx, deps, change)
        for step in _list_begun(change):
            job = started.get((key, step.index))
            begun.append(BegunStep(*key, step.index, step.digest, job, due.get(step.index)))
    step_changes.begin_steps(tx, begun)


def _list_begun(change: Change) -> Iterable[Step]:
    for move in change.moves:
        step = change.after.steps[move.step]
        if move.effect is not Effect.CANCEL_JOB and step.state is StepState.ACTIVE:
            yield step


def _make_after(change: Change, started: Mapping[tuple[WorkflowKey, int], JobId]) -> Loaded:
    """Return the workflow as the next transaction would load it."""
    before, after = change.before, change.after
    pairs = zip(before.value.steps, after.steps, before.job_ids, strict=True)
    job_ids = [job if new.attempt == old.attempt else None for old, new, job in pairs]
    for step in _list_begun(change):
        job_ids[step.index] = started.get(((before.org, after.id), step.index))
    return replace(before, value=after, job_ids=tuple(job_ids))


def _find_due(tx: Tx, deps: Deps, change: Change) -> dict[int, datetime]:
    """Return by step when opened gates expire and started timers fire."""
    due: dict[int, datetime] = {}
    timers = [move.step for move in change.moves if move.effect is Effect.START_TIMER]
    if timers:
        key = (change.before.org, change.after.id)
        for index, document in steps.load_specs(tx, key, timers).items():
            due[index] = tx.now + timedelta(seconds=read_spec(document).delay_s or 0.0)
    for move in change.moves:
        if move.effect is Effect.OPEN_GATE:
            due[move.step] = tx.now + timedelta(seconds=deps.timings.approval_s)
    if due:
        tx.wake("timers")
    return due
