"""A workflow before and after its events, inside one transaction."""

from dataclasses import dataclass, field
from typing import NamedTuple

from exclave.base.errors import NotFound, Problem
from exclave.base.json_values import JsonObject
from exclave.control.job_specs.rendering import Renderings
from exclave.control.progress.workflow_events import WorkflowEvent
from exclave.domain.workflows import Workflow
from exclave.flow.decide import StepEffect
from exclave.flow.events import apply_event
from exclave.storage.engine.database import Tx
from exclave.storage.workflows import Loaded


class Answer(NamedTuple):
    """What is stored with a step that an event ended; None leaves what is there."""

    message: str | None = None
    outputs: JsonObject | None = None
    by: str | None = None


NO_ANSWER = Answer()


@dataclass(slots=True)
class Change:
    """A workflow before and after its events, the moves to make, and the answers by step."""

    before: Loaded
    after: Workflow
    moves: tuple[StepEffect, ...] = ()
    answers: dict[int, Answer] = field(default_factory=dict)
    texts: Renderings | None = None


def apply_to(tx: Tx, change: Change | None, incoming: WorkflowEvent) -> Problem | None:
    """Apply an event to a workflow in memory; return its problem, or None."""
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


def _note(change: Change, incoming: WorkflowEvent, step: int | None) -> None:
    brings = incoming.outputs or incoming.message or incoming.by
    if step is None or not brings:
        return
    earlier = change.answers.get(step, NO_ANSWER)
    change.answers[step] = Answer(
        incoming.message,
        earlier.outputs if incoming.outputs is None else incoming.outputs,
        earlier.by if incoming.by is None else incoming.by,
    )
