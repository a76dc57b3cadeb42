"""Apply events to workflows: load them locked, decide, save, and enqueue jobs, in batches."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import NamedTuple

from exclave.base.errors import NotFound, Problem
from exclave.base.json_values import JsonObject
from exclave.control.deps import Deps
from exclave.control.install_state.parts import MOST_REPLANS, note_failed
from exclave.control.install_state.reported_outputs import OutputsInvalid, load_outputs
from exclave.control.job_specs.builders import make_job
from exclave.control.job_specs.context import Scope
from exclave.control.job_specs.rendering import NotRendered, Renderings
from exclave.control.progress import lane_turns
from exclave.control.progress.build_waits import end_build
from exclave.control.progress.install_endings import end_install_workflow
from exclave.domain.builds import BuildFailure
from exclave.domain.identity import OrgId, QueueId
from exclave.domain.intents import ApplyPart, PlanPart, StepIntent, SyncPart, read_intent
from exclave.domain.jobs import EndedJob, Job, JobId, JobKind, JobState, NewJob, Reason
from exclave.domain.workflows import (
    Step,
    StepState,
    Workflow,
    WorkflowId,
    WorkflowKey,
    WorkflowState,
    read_spec,
)
from exclave.flow.decide import Effect, StepEffect, approved_digest, decide
from exclave.flow.events import (
    Answered,
    Event,
    GateDecision,
    JobEnded,
    Retried,
    apply_event,
    with_steps,
)
from exclave.jobspec.errors import NotReady
from exclave.storage import jobs, step_changes, steps, workflows
from exclave.storage.engine.database import Tx
from exclave.storage.step_changes import BegunStep, EndedStep, ResetStep
from exclave.storage.workflows import Loaded

_MESSAGE = 4000
"""Maximum length of a step's message, in characters."""
EventFactory = Callable[[Tx, QueueId, Workflow], Event]
"""Returns an event for the locked workflow; raises a `Problem` if it is not possible."""


@dataclass(frozen=True, slots=True)
class WorkflowEvent:
    """An event of one workflow, with the message and outputs that are stored with its step."""

    org: OrgId
    workflow: WorkflowId
    event: Event | EventFactory | None = None
    outputs: JsonObject | None = None
    message: str = ""
    by: str | None = None
    texts: Renderings | None = None
    """Texts of its steps that a worker process has rendered already."""

    @property
    def key(self) -> WorkflowKey:
        """The workflow's primary key."""
        return (self.org, self.workflow)


class _Answer(NamedTuple):
    """What is stored with a step that an event ended; None leaves what is there."""

    message: str | None = None
    outputs: JsonObject | None = None
    by: str | None = None


_NO_ANSWER = _Answer()


@dataclass(slots=True)
class _Change:
    """A workflow before and after its events, the moves to make, and the answers by step."""

    before: Loaded
    after: Workflow
    moves: tuple[StepEffect, ...] = ()
    answers: dict[int, _Answer] = field(default_factory=dict)
    texts: Renderings | None = None


def begin_new(tx: Tx, deps: Deps, new: Sequence[Loaded]) -> None:
    """Start workflows that this transaction stores."""
    changes = [_Change(loaded, loaded.value) for loaded in new]
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
    changes = {key: _Change(item, item.value) for key, item in loaded.items()}
    answers = [_apply_to(tx, changes.get(incoming.key), incoming) for incoming in events]
    return answers, _decide(tx, deps, list(changes.values()))


def _decide(tx: Tx, deps: Deps, changes: Sequence[_Change]) -> list[WorkflowEvent]:
    for change in changes:
        blocked = lane_turns.find_blocked(tx, change.before, change.after)
        progress = decide(change.after, blocked)
        change.after, change.moves = progress.workflow, progress.effects
    return _save(tx, deps, changes)


def _apply_to(tx: Tx, change: _Change | None, incoming: WorkflowEvent) -> Problem | None:
    if change is None:
        return NotFound("there is no such workflow")
    event = incoming.event
    change.texts = incoming.texts or change.texts
    try:
        if callable(event):
            event = event(tx, change.before.queue, change.after)
        after = change.after if event is None else apply_event(change.after, event)
    except Problem as problem:
        return problem
    if after is not change.after:
        change.after = after
        _note(change, incoming, getattr(event, "step", None))
    return None


def _note(change: _Change, incoming: WorkflowEvent, step: int | None) -> None:
    brings = incoming.outputs or incoming.message or incoming.by
    if step is None or not brings:
        return
    earlier = change.answers.get(step, _NO_ANSWER)
    change.answers[step] = _Answer(
        incoming.message,
        earlier.outputs if incoming.outputs is None else incoming.outputs,
        earlier.by if incoming.by is None else incoming.by,
    )


def _save(tx: Tx, deps: Deps, changes: Sequence[_Change]) -> list[WorkflowEvent]:
    moved = [change for change in changes if change.moves or change.after != change.before.value]
    _end_steps(tx, moved)
    follow: list[WorkflowEvent] = []
    started = _start_jobs(tx, deps, moved, follow)
    _begin_steps(tx, deps, moved, started)
    workflows.save_workflows(tx, [_make_after(change, started) for change in moved])
    for change in moved:
        tx.wake(f"workflow:{change.after.id}")
        if change.before.kind and change.after.state is not WorkflowState.RUNNING:
            before = change.before
            end_install_workflow(
                tx, deps, before.org, before.queue, before.kind, change.after.state
            )
        follow += _cancel_jobs(tx, change)
        freed = lane_turns.release_turns(tx, change.before, change.after)
        follow += [WorkflowEvent(change.before.org, workflow) for workflow in freed]
    return follow


def _start_jobs(
    tx: Tx, deps: Deps, changes: Sequence[_Change], follow: list[WorkflowEvent]
) -> dict[tuple[WorkflowKey, int], JobId]:
    new: list[NewJob] = []
    for change in changes:
        wanted = [move.step for move in change.moves if move.effect is Effect.START_JOB]
        if wanted:
            new += _make_jobs(tx, deps, change, wanted, follow)
            tx.wake(f"queue:{change.before.queue}")
    if new:
        jobs.add_jobs(tx, new)
    return {((job.org_id, job.workflow_id), job.step): job.id for job in new}


def _make_jobs(
    tx: Tx, deps: Deps, change: _Change, wanted: Sequence[int], follow: list[WorkflowEvent]
) -> Iterable[NewJob]:
    key = (change.before.org, change.after.id)
    specs = change.before.specs or steps.load_specs(tx, key, wanted)
    for index in wanted:
        step = change.after.steps[index]
        spec, intent = read_spec(specs[index]), read_intent(specs[index])
        if spec.job is None and change.texts is None and deps.postponed.has(*key, step):
            _postpone(tx, deps, change, step)
            continue
        try:
            inputs = _load_inputs(tx, key, step)
            job = spec.job or make_job(_open_scope(tx, deps, change, step), intent)
        except NotRendered:
            _postpone(tx, deps, change, step)
            continue
        except NotReady as problem:
            follow += give_up_step(tx, change.before, step, intent, problem)
            continue
        yield NewJob(
            org_id=change.before.org,
            id=JobId(deps.ids.new("job")),
            queue_id=change.before.queue,
            workflow_id=change.after.id,
            step=index,
            step_name=step.name,
            step_attempt=step.attempt,
            kind=JobKind(str(job["kind"])),
            mutating=step.mutating,
            lanes=list(step.lanes),
            priority=spec.priority,
            spec=job,
            inputs={name: outputs for name, outputs in inputs.items() if outputs},
            approved_digest=approved_digest(change.after, step),
        )


def _load_inputs(tx: Tx, key: WorkflowKey, step: Step) -> dict[str, JsonObject]:
    try:
        return load_outputs(tx, key, step.needs) if step.needs else {}
    except OutputsInvalid as problem:
        raise NotReady(Reason.RENDER_FAILED, problem.message, hint=problem.advice) from problem


def _open_scope(tx: Tx, deps: Deps, change: _Change, step: Step) -> Scope:
    return Scope(
        tx,
        deps,
        change.before.org,
        change.before.queue,
        change.after,
        change.before.job_ids,
        step.name,
        texts=change.texts,
    )


def _postpone(tx: Tx, deps: Deps, change: _Change, step: Step) -> None:
    """Leave a step pending until its texts are rendered outside of transactions."""
    change.after = with_steps(change.after, [step._replace(state=StepState.PENDING)])
    change.moves = tuple(move for move in change.moves if move.step != step.index)
    tx.when_committed(partial(deps.postponed.add, change.before.org, change.after.id, step))


def give_up_step(
    tx: Tx, loaded: Loaded, step: Step, stored: StepIntent | None, problem: NotReady
) -> list[WorkflowEvent]:
    """End a step that cannot become a job; a stale plan is made again instead."""
    message = _make_storable(f"{problem.message}. {problem.advice}".strip())
    ended = JobEnded(step.index, step.attempt, JobState.FAILED, "", str(problem.reason))
    follow = [WorkflowEvent(loaded.org, loaded.value.id, ended, None, message)]
    match None if stored is None else stored.intent:
        case ApplyPart(plan=name) if _may_replan(step, problem):
            plan = next(candidate for candidate in loaded.value.steps if candidate.name == name)
            return [*follow, WorkflowEvent(loaded.org, loaded.value.id, Retried(plan.index))]
        case PlanPart(part) | ApplyPart(part) | SyncPart(part):
            why = _make_storable(problem.message)
            note_failed(tx, loaded.org, loaded.queue, part, loaded.value.id, why)
        case _:
            pass
    return follow


def _may_replan(step: Step, problem: NotReady) -> bool:
    return problem.reason is Reason.PLAN_STALE and step.attempt < MOST_REPLANS


def _make_storable(text: str) -> str:
    """Return a message without characters that a database refuses; it may quote template values."""
    return text.encode(errors="replace").decode().replace("\0", "?")[:_MESSAGE]


def _end_steps(tx: Tx, changes: Sequence[_Change]) -> None:
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
                ended.append(_make_ended(key, new, change.answers.get(new.index, _NO_ANSWER)))
    step_changes.reset_steps(tx, reset)
    step_changes.end_steps(tx, ended)


def _make_ended(key: WorkflowKey, step: Step, answer: _Answer) -> EndedStep:
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
    tx: Tx, deps: Deps, changes: Sequence[_Change], started: Mapping[tuple[WorkflowKey, int], JobId]
) -> None:
    begun: list[BegunStep] = []
    for change in changes:
        key = (change.before.org, change.after.id)
        due = _find_due(tx, deps, change)
        for step in _list_begun(change):
            job = started.get((key, step.index))
            begun.append(BegunStep(*key, step.index, step.digest, job, due.get(step.index)))
    step_changes.begin_steps(tx, begun)


def _list_begun(change: _Change) -> Iterable[Step]:
    for move in change.moves:
        step = change.after.steps[move.step]
        if move.effect is not Effect.CANCEL_JOB and step.state is StepState.ACTIVE:
            yield step


def _make_after(change: _Change, started: Mapping[tuple[WorkflowKey, int], JobId]) -> Loaded:
    """Return the workflow as the next transaction would load it."""
    before, after = change.before, change.after
    pairs = zip(before.value.steps, after.steps, before.job_ids, strict=True)
    job_ids = [job if new.attempt == old.attempt else None for old, new, job in pairs]
    for step in _list_begun(change):
        job_ids[step.index] = started.get(((before.org, after.id), step.index))
    return replace(before, value=after, job_ids=tuple(job_ids))


def _find_due(tx: Tx, deps: Deps, change: _Change) -> dict[int, datetime]:
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


def _cancel_jobs(tx: Tx, change: _Change) -> list[WorkflowEvent]:
    """Request the cancellation of running jobs; jobs that were not started end at once."""
    follow: list[WorkflowEvent] = []
    for move in change.moves:
        job = change.before.job_ids[move.step]
        if move.effect is not Effect.CANCEL_JOB or job is None:
            continue
        ended = end_unstarted_job(tx, change.before.org, job)
        if ended is not None:
            follow += [ended, *end_unstarted_build(tx, change.before.org, job)]
    return follow


def end_unstarted_build(tx: Tx, org: OrgId, job: JobId) -> list[WorkflowEvent]:
    """Fail the build of a job that was cancelled before it ran; return events for its waits."""
    row = jobs.find_job(tx, org, job)
    if row is None or row.kind is not JobKind.BUILD:
        return []
    cancelled = BuildFailure("cancelled before it began")
    return [
        WorkflowEvent(org, wait.workflow, Answered(wait.position, wait.attempt))
        for wait in end_build(tx, org, str(row.spec["build_id"]), cancelled)
    ]


def end_unstarted_job(tx: Tx, org: OrgId, job: JobId) -> WorkflowEvent | None:
    """Cancel a job: at once if it is queued, else by a stored request to its runner."""
    row = jobs.find_job(tx, org, job, lock=True)
    if row is None or row.state.is_final:
        return None
    jobs.request_cancel(tx, org, job)
    if row.state is JobState.QUEUED:
        jobs.end_job(tx, org, job, JobState.CANCELLED, reason=Reason.CANCELLED)
        return make_end_event(row, JobState.CANCELLED, reason=Reason.CANCELLED)
    tx.wake(f"cancel:{row.queue_id}")
    return None


def make_end_event(
    job: Job | EndedJob,
    state: JobState,
    *,
    reason: Reason,
    digest: str = "",
    message: str = "",
    outputs: JsonObject | None = None,
    then: GateDecision = GateDecision.ASK,
) -> WorkflowEvent:
    """Return the event that ends a job's step."""
    event = JobEnded(job.step, job.step_attempt, state, digest, reason, then)
    return WorkflowEvent(job.org_id, job.workflow_id, event, outputs, message)
