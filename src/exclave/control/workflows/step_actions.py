"""What people want of workflows: each wish an audited event; wishes that meet go as a set."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from exclave.base.errors import NotFound, Problem
from exclave.base.names import suggest
from exclave.control.access import require_on
from exclave.control.audit import Entry, record_all
from exclave.control.deps import Deps
from exclave.control.progress.advance import Happening, advance
from exclave.domain.identity import QueueId, Right, User
from exclave.domain.workflows import Step, Workflow, WorkflowId
from exclave.flow.events import Event
from exclave.storage.engine.database import Tx

Check = Callable[[Tx, QueueId, Step], None]
"""Raises what speaks against doing something to a step."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What somebody wants to happen to a workflow, under which name it goes on record."""

    workflow: WorkflowId
    right: Right
    action: str
    event_of: Callable[[Tx, QueueId, Workflow], Event]
    step: str | None = None
    note: str = ""
    outputs: Mapping[str, Any] | None = None


def aim_at(
    step: str, event_of: Callable[[Step], Event], check: Check | None = None
) -> Callable[[Tx, QueueId, Workflow], Event]:
    """Make the event for one step, found by its name."""

    def aim(tx: Tx, queue: QueueId, workflow: Workflow) -> Event:
        found = find_step(workflow, step)
        if check is not None:
            check(tx, queue, found)
        return event_of(found)

    return aim


def find_step(workflow: Workflow, name: str) -> Step:
    """Find a step by its name."""
    found = next((item for item in workflow.steps if item.name == name), None)
    if found is None:
        near = suggest(name, [item.name for item in workflow.steps])
        raise NotFound(f"the workflow has no step named `{name}`", hint=near)
    return found


async def steer(deps: Deps, user: User, wish: Wish) -> None:
    """Do what somebody wants, if they may and if the workflow is in a state for it."""
    await deps.db.write_each(_steer_all, _Request(deps, user, wish), key=wish.workflow)


@dataclass(frozen=True, slots=True)
class _Request:
    deps: Deps
    user: User
    wish: Wish


def _steer_all(tx: Tx, requests: Sequence[_Request]) -> Sequence[Problem | None]:
    deps = requests[0].deps
    problems = advance(tx, deps, [_make_happening(item.user, item.wish) for item in requests])
    done = [item for item, problem in zip(requests, problems, strict=True) if problem is None]
    record_all(tx, deps, [_make_entry(item.user, item.wish) for item in done])
    return problems


def _make_happening(user: User, wish: Wish) -> Happening:
    def aim(tx: Tx, queue: QueueId, workflow: Workflow) -> Event:
        require_on(tx, user, wish.right, queue, noun="workflow")
        return wish.event_of(tx, queue, workflow)

    by = user.name if wish.step is not None else None
    return Happening(user.org, wish.workflow, aim, wish.outputs, wish.note, by)


def _make_entry(user: User, wish: Wish) -> Entry:
    detail = {} if wish.step is None else {"step": wish.step, "note": wish.note}
    return Entry(user.org, user.name, wish.action, wish.workflow, detail)
