"""User actions on workflows (approve, deny, retry, skip).

Each is one audited event; concurrent ones are applied as a batch.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from exclave.base.errors import NotFound, Problem
from exclave.base.json_values import JsonObject
from exclave.base.names import suggest
from exclave.control.access import require_on
from exclave.control.audit import Entry, record_all
from exclave.control.deps import Deps
from exclave.control.progress.advance import advance
from exclave.control.progress.workflow_events import WorkflowEvent
from exclave.domain.identity import QueueId, Right, User
from exclave.domain.workflows import Step, Workflow, WorkflowId
from exclave.flow.events import Event
from exclave.storage.engine.database import Tx

Check = Callable[[Tx, QueueId, Step], None]
"""Raises a `Problem` if an action on a step is not possible."""


@dataclass(frozen=True, slots=True)
class StepAction:
    """A user's action on a workflow or one of its steps, with its name in the audit log."""

    workflow: WorkflowId
    right: Right
    name: str
    event_of: Callable[[Tx, QueueId, Workflow], Event]
    step: str | None = None
    note: str = ""
    outputs: JsonObject | None = None


def for_step(
    step: str, event_of: Callable[[Step], Event], check: Check | None = None
) -> Callable[[Tx, QueueId, Workflow], Event]:
    """Return a factory for an event of the step with this name."""

    def make_event(tx: Tx, queue: QueueId, workflow: Workflow) -> Event:
        target = find_step(workflow, step)
        if check is not None:
            check(tx, queue, target)
        return event_of(target)

    return make_event


def find_step(workflow: Workflow, name: str) -> Step:
    """Return the step with this name; `NotFound` if there is none."""
    target = next((item for item in workflow.steps if item.name == name), None)
    if target is None:
        near = suggest(name, [item.name for item in workflow.steps])
        raise NotFound(f"the workflow has no step named `{name}`", hint=near)
    return target


async def apply_action(deps: Deps, user: User, action: StepAction) -> None:
    """Apply a user's action, if the user has the right and the workflow's state permits it."""
    await deps.db.write_each(_apply_all, _Request(deps, user, action), key=action.workflow)


@dataclass(frozen=True, slots=True)
class _Request:
    deps: Deps
    user: User
    action: StepAction


def _apply_all(tx: Tx, requests: Sequence[_Request]) -> Sequence[Problem | None]:
    deps = requests[0].deps
    problems = advance(tx, deps, [_make_event(item.user, item.action) for item in requests])
    done = [item for item, problem in zip(requests, problems, strict=True) if problem is None]
    record_all(tx, deps, [_make_entry(item.user, item.action) for item in done])
    return problems


def _make_event(user: User, action: StepAction) -> WorkflowEvent:
    def make_event(tx: Tx, queue: QueueId, workflow: Workflow) -> Event:
        require_on(tx, user, action.right, queue, noun="workflow")
        return action.event_of(tx, queue, workflow)

    by = user.name if action.step is not None else None
    return WorkflowEvent(user.org, action.workflow, make_event, action.outputs, action.note, by)


def _make_entry(user: User, action: StepAction) -> Entry:
    detail = {} if action.step is None else {"step": action.step, "note": action.note}
    return Entry(user.org, user.name, action.name, action.workflow, detail)
