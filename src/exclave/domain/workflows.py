"""Workflows and steps as values: a stored graph of work, gates, waits and timers."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, NewType

WorkflowId = NewType("WorkflowId", str)


class StepKind(StrEnum):
    """What a step waits for."""

    JOB = "job"
    GATE = "gate"
    WAIT = "wait"
    TIMER = "timer"


class StepState(StrEnum):
    """Where a step stands.

    `pending` has not begun; `active` waits for its job, approval, event or time.
    """

    PENDING = "pending"
    ACTIVE = "active"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    LOST = "lost"
    SKIPPED = "skipped"
    CANCELLED = "cancelled"

    @property
    def is_over(self) -> bool:
        """Tell whether nothing happens to the step by itself any more."""
        return self not in {StepState.PENDING, StepState.ACTIVE}

    @property
    def lets_pass(self) -> bool:
        """Tell whether steps that need this one may begin."""
        return self in {StepState.SUCCEEDED, StepState.SKIPPED}


class WorkflowState(StrEnum):
    """Where a workflow stands; a failed one comes back to life by retry or skip."""

    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Step(NamedTuple):
    """What decisions need to know of a step; its specification stays in storage.

    A tuple: every event reads all steps of its workflow, and a frozen dataclass takes four times as
    long to make.
    """

    index: int  # type: ignore[assignment] # nobody searches a step
    name: str
    kind: StepKind
    state: StepState = StepState.PENDING
    needs: tuple[int, ...] = ()
    lanes: tuple[str, ...] = ()
    mutating: bool = False
    digest: str = ""
    """Of a job: what it produced. Of a gate: what it asks approval for."""
    attempt: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Workflow:
    """A workflow with all its steps, in index order."""

    id: WorkflowId
    state: WorkflowState
    steps: tuple[Step, ...]
    approve_all: bool = False
    plan_only: bool = False
    cancel_requested: bool = False
