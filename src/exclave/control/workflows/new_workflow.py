"""Checking a workflow that a user wrote, before any transaction begins."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from exclave.base.errors import InvalidInput
from exclave.domain.four_eyes import Author
from exclave.domain.identity import QueueId, User
from exclave.domain.workflows import NewStep, NewWorkflow, StepKind, WorkflowId
from exclave.flow.graph import find_unguarded, resolve_needs
from exclave.storage.engine.types import write_json
from exclave.wire import workflows as wire


@dataclass(frozen=True, slots=True)
class Planned:
    """A workflow that is ready to be stored, and what has to be checked before that."""

    workflow: NewWorkflow
    size: int
    """The number of characters that its steps take in the database."""
    unguarded: tuple[str, ...] = ()
    """The steps that change something before any gate."""


def plan_workflow(user: User, workflow: WorkflowId, request: wire.NewWorkflow) -> Planned:
    """Check the graph of a requested workflow and return it with its needs resolved."""
    names = Counter(step.name for step in request.steps)
    doubled = [name for name, times in names.items() if times > 1]
    if doubled:
        raise InvalidInput(f"two steps are named `{min(doubled)}`", hint="Give each its own name.")
    needs = resolve_needs({step.name: step.needs for step in request.steps})
    new = NewWorkflow(
        org=user.org,
        id=workflow,
        queue=QueueId(request.queue_id),
        name=request.name,
        author=Author.of(user),
        steps=[_plan_step(step, needs[step.name]) for step in request.steps],
        approve_all=request.approve_all,
        plan_only=request.plan_only,
        labels=request.labels,
    )
    size = sum(len(write_json(step.spec)) for step in new.steps)
    return Planned(new, size, _list_unguarded(new.steps))


def _list_unguarded(steps: Sequence[NewStep]) -> tuple[str, ...]:
    """List the steps that run a script, or are marked as mutating, before any gate.

    A script counts in any case: it may do anything, whatever its step declares.
    """
    gates = [at for at, step in enumerate(steps) if step.kind is StepKind.GATE]
    acting = [
        at
        for at, step in enumerate(steps)
        if step.mutating or (step.job is not None and step.job["kind"] != "noop")
    ]
    if not acting:
        return ()
    needs = [step.needs for step in steps]
    return tuple(steps[at].name for at in find_unguarded(needs, gates, acting))


def _plan_step(step: wire.NewStep, needs: tuple[int, ...]) -> NewStep:
    return NewStep(
        name=step.name,
        kind=step.kind,
        needs=needs,
        lanes=tuple(step.lanes),
        mutating=step.mutating,
        job=None if step.job is None else step.job.model_dump(mode="json"),
        priority=step.priority,
        delay_s=step.delay_s,
    )
