"""Workflows and steps as values: a stored graph of work, gates, waits and timers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, NewType

from exclave.base.json_values import Json, JsonObject
from exclave.domain.four_eyes import Author
from exclave.domain.identity import OrgId, QueueId

WorkflowId = NewType("WorkflowId", str)
WorkflowKey = tuple[OrgId, WorkflowId]


class WorkflowKind(StrEnum):
    """What a workflow of an install is for."""

    PROVISION = "provision"
    REPROVISION = "reprovision"
    REPROVISION_SANDBOX = "reprovision_sandbox"
    DEPROVISION_SANDBOX = "deprovision_sandbox"
    DEPROVISION = "deprovision"
    DEPLOY = "deploy"
    DEPLOY_ALL = "deploy_all"
    TEARDOWN = "teardown"
    TEARDOWN_ALL = "teardown_all"
    SYNC_SECRETS = "sync_secrets"
    INPUT_UPDATE = "input_update"
    ACTION_RUN = "action_run"
    RUNBOOK_RUN = "runbook_run"
    DRIFT_SCAN = "drift_scan"
    HEALTH_CHECK = "health_check"


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
        """Whether the step has ended; only a retry or skip changes it."""
        return self not in {StepState.PENDING, StepState.ACTIVE}

    @property
    def lets_pass(self) -> bool:
        """Whether steps that need this one may begin."""
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


@dataclass(frozen=True, slots=True)
class NewStep:
    """A step that is about to be stored."""

    name: str
    kind: StepKind
    needs: tuple[int, ...] = ()
    """The positions of the steps that have to end before it."""
    lanes: tuple[str, ...] = ()
    mutating: bool = False
    job: JsonObject | None = None
    """The specification of its job, where it is known from the start."""
    intent: JsonObject | None = None
    """What the specification of its job is made from when the step begins."""
    priority: int = 0
    delay_s: float | None = None

    @property
    def spec(self) -> dict[str, Json]:
        """The document that is stored with the step and read when it begins."""
        spec: dict[str, Json] = {
            "job": self.job,
            "priority": self.priority,
            "delay_s": self.delay_s,
        }
        return spec if self.intent is None else {**spec, "intent": self.intent}


class StepSpec(NamedTuple):
    """What the document of every step has; `flow.plans.intents` reads the intent in it."""

    job: JsonObject | None
    priority: int
    delay_s: float | None


def read_spec(document: JsonObject) -> StepSpec:
    """Return the job, priority and delay in the document of a stored step."""
    job, priority, delay_s = document["job"], document["priority"], document["delay_s"]
    if not (
        (job is None or isinstance(job, Mapping))
        and isinstance(priority, int)
        and (delay_s is None or isinstance(delay_s, int | float))
    ):
        message = "the document of a step has a field of the wrong type"
        raise TypeError(message)
    return StepSpec(job, priority, delay_s)


@dataclass(frozen=True, slots=True)
class NewWorkflow:
    """A workflow that is about to be stored, with all its steps pending."""

    org: OrgId
    id: WorkflowId
    queue: QueueId
    name: str
    author: Author
    steps: Sequence[NewStep]
    kind: WorkflowKind | None = None
    """None for a build and for a workflow that a user wrote."""
    approve_all: bool = False
    plan_only: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    sealed: Mapping[str, str] | None = None
    """Sensitive values that its steps were given, encrypted."""
    serial: bool = False
    """Whether its events lock the queue although none of its steps changes anything."""

    @property
    def is_laned(self) -> bool:
        """Whether its events lock the queue: mutating steps take turns on the queue's lanes."""
        return self.serial or any(step.mutating for step in self.steps)
