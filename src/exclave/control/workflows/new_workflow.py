"""Build the rows of a new workflow from a request, before any transaction begins."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from exclave.base.errors import InvalidInput
from exclave.domain.identity import OrgId, QueueId, User
from exclave.domain.workflows import StepKind, StepState, WorkflowId, WorkflowState
from exclave.flow.graph import find_unguarded, resolve_needs
from exclave.wire.workflows import NewStep, NewWorkflow


@dataclass(frozen=True, slots=True)
class Planned:
    """A new workflow, ready to be stored."""

    org: OrgId
    queue: QueueId
    id: WorkflowId
    row: Mapping[str, Any]
    steps: Sequence[Mapping[str, Any]]
    unguarded: tuple[str, ...] = ()
    """The steps that change something before anybody was asked."""


def plan_workflow(user: User, workflow: WorkflowId, wish: NewWorkflow) -> Planned:
    """Check the graph of steps and return its rows."""
    doubled = [n for n, times in Counter(step.name for step in wish.steps).items() if times > 1]
    if doubled:
        raise InvalidInput(f"two steps are named `{min(doubled)}`", hint="Give each its own name.")
    needs = resolve_needs({step.name: step.needs for step in wish.steps})
    at = {"org_id": user.org, "workflow_id": workflow}
    rows = [
        {**at, "position": position, "needs": ",".join(map(str, needs[step.name])), **_plan(step)}
        for position, step in enumerate(wish.steps)
    ]
    row = {
        "org_id": user.org,
        "id": workflow,
        "queue_id": wish.queue_id,
        "name": wish.name,
        "state": WorkflowState.RUNNING,
        "approve_all": wish.approve_all,
        "plan_only": wish.plan_only,
        "cancel_requested": False,
        "revision": 1,
        "laned": any(step.mutating for step in wish.steps),
        "labels": wish.labels,
        "created_by": user.name,
        "by_person": user.person,
        "by_token": user.token,
    }
    unguarded = _list_unguarded(wish.steps, [needs[step.name] for step in wish.steps])
    return Planned(user.org, QueueId(wish.queue_id), workflow, row, rows, unguarded)


def _list_unguarded(steps: Sequence[NewStep], needs: Sequence[tuple[int, ...]]) -> tuple[str, ...]:
    """Return the names of steps that run a script or are mutating, and have no gate before them.

    A script counts in any case: it may do anything, whatever its step declares.
    """
    gates = [at for at, step in enumerate(steps) if step.kind is StepKind.GATE]
    acting = [
        at
        for at, step in enumerate(steps)
        if step.mutating or (step.job is not None and step.job.kind != "noop")
    ]
    return tuple(steps[at].name for at in find_unguarded(needs, gates, acting)) if acting else ()


def _plan(step: NewStep) -> dict[str, Any]:
    return {
        "name": step.name,
        "kind": step.kind,
        "state": StepState.PENDING,
        "lanes": ",".join(step.lanes),
        "mutating": step.mutating,
        "outputs": {},
        "spec": {
            "job": None if step.job is None else step.job.model_dump(mode="json"),
            "priority": step.priority,
            "delay_s": step.delay_s,
        },
    }
