"""Make the jobs of steps that begin; steps that cannot become a job end or are postponed."""

from collections.abc import Iterable, Sequence
from functools import partial

from exclave.base.json_values import JsonObject
from exclave.control.deps import Deps
from exclave.control.install_state.parts import MOST_REPLANS, note_failed
from exclave.control.install_state.reported_outputs import OutputsInvalid, load_outputs
from exclave.control.job_specs.builders import make_job
from exclave.control.job_specs.context import Scope
from exclave.control.job_specs.rendering import NotRendered
from exclave.control.progress.stack_needs import find_lack
from exclave.control.progress.workflow_changes import Change
from exclave.control.progress.workflow_events import WorkflowEvent
from exclave.domain.intents import ApplyPart, PlanPart, StepIntent, SyncPart, read_intent
from exclave.domain.jobs import JobId, JobKind, JobState, NewJob, Reason
from exclave.domain.workflows import Step, StepState, WorkflowKey, read_spec
from exclave.flow.decide import Effect, approved_digest
from exclave.flow.events import JobEnded, Retried, with_steps
from exclave.jobspec.errors import NotReady
from exclave.storage import jobs, step_changes, steps
from exclave.storage.engine.database import Tx
from exclave.storage.workflows import Loaded

_MESSAGE = 4000
"""Maximum length of a step's message, in characters."""


def start_jobs(
    tx: Tx, deps: Deps, changes: Sequence[Change], follow: list[WorkflowEvent]
) -> dict[tuple[WorkflowKey, int], JobId]:
    """Store the jobs of steps that begin; add events of those that cannot to `follow`."""
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
    tx: Tx, deps: Deps, change: Change, wanted: Sequence[int], follow: list[WorkflowEvent]
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
        if lack := find_lack(tx, change.before.org, change.before.queue, job):
            _hold_back(tx, change, step, lack)
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


def _open_scope(tx: Tx, deps: Deps, change: Change, step: Step) -> Scope:
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


def _hold_back(tx: Tx, change: Change, step: Step, lack: str) -> None:
    """Leave a step pending until the customer's Stack has what its job needs."""
    _leave_pending(change, step)
    key = (change.before.org, change.after.id)
    step_changes.note_wait(tx, key, step.index, _make_storable(lack))


def _leave_pending(change: Change, step: Step) -> None:
    change.after = with_steps(change.after, [step._replace(state=StepState.PENDING)])
    change.moves = tuple(move for move in change.moves if move.step != step.index)


def _postpone(tx: Tx, deps: Deps, change: Change, step: Step) -> None:
    """Leave a step pending until its texts are rendered outside of transactions."""
    _leave_pending(change, step)
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
