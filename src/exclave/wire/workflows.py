"""Workflows over the Control API."""

from datetime import datetime
from typing import Annotated

from pydantic import Field, StringConstraints, model_validator

from exclave.domain.lanes import check_lane
from exclave.domain.workflows import StepKind as StepKind
from exclave.domain.workflows import StepState as StepState
from exclave.domain.workflows import WorkflowState as WorkflowState
from exclave.wire.jobs import Blocker, JobState, JsonValue
from exclave.wire.model import Id, Labels, Name, Reply, Request, Text
from exclave.wire.spec_fields import Digest, Outputs
from exclave.wire.specs import OwnSpec

MAX_STEPS = 200
MAX_NEEDS = 2_000
"""Maximum number of dependencies, of all steps together."""
MAX_LANES = 100
"""Maximum number of different lanes, of all steps together."""


class NewStep(Request):
    """A step of a new workflow; `needs` names other steps, which may come later in the list."""

    name: Name
    kind: StepKind = StepKind.JOB
    needs: Annotated[list[Name], Field(max_length=MAX_STEPS)] = []
    job: OwnSpec | None = None
    mutating: bool = False
    lanes: Annotated[list[str], Field(max_length=20)] = []
    priority: Annotated[int, Field(ge=-100, le=100)] = 0
    delay_s: Annotated[float, Field(gt=0, le=30 * 24 * 3600)] | None = None

    @model_validator(mode="after")
    def _fits_its_kind(self) -> "NewStep":
        if (self.job is not None) != (self.kind is StepKind.JOB):
            message = f"step `{self.name}`: `job` belongs to steps of kind `job`, and only to them"
            raise ValueError(message)
        if (self.delay_s is not None) != (self.kind is StepKind.TIMER):
            message = (
                f"step `{self.name}`: `delay_s` belongs to steps of kind `timer`, and only to them"
            )
            raise ValueError(message)
        for lane in self.lanes:
            check_lane(lane)
        if len(set(self.lanes)) < len(self.lanes):
            message = f"step `{self.name}`: a lane is named twice"
            raise ValueError(message)
        if self.lanes and self.kind is not StepKind.JOB:
            message = f"step `{self.name}`: only a job step has lanes"
            raise ValueError(message)
        if self.mutating and not self.lanes:
            message = f"step `{self.name}`: a mutating step names the lanes that it changes"
            raise ValueError(message)
        return self


class NewWorkflow(Request):
    """A graph of steps for one install, or for the org's build queue."""

    name: Name
    queue_id: Id
    steps: Annotated[list[NewStep], Field(min_length=1, max_length=MAX_STEPS)]
    approve_all: bool = False
    plan_only: bool = False
    labels: Labels = {}

    @model_validator(mode="after")
    def _is_no_thicket(self) -> "NewWorkflow":
        needs = sum(len(step.needs) for step in self.steps)
        if needs > MAX_NEEDS:
            message = f"the steps have {needs} needs; at most {MAX_NEEDS} are possible"
            raise ValueError(message)
        lanes = len({lane for step in self.steps for lane in step.lanes})
        if lanes > MAX_LANES:
            message = f"the steps name {lanes} lanes; at most {MAX_LANES} are possible"
            raise ValueError(message)
        return self


class StepReply(Reply):
    """A step of a workflow."""

    index: int
    name: str
    kind: StepKind
    state: StepState
    needs: list[str]
    lanes: list[str]
    mutating: bool
    attempt: int
    digest: str
    reason: str
    message: str
    job_id: Id | None
    job_state: JobState | None
    outputs: dict[str, JsonValue]
    waiting_for: str
    """`approval`, `event`, `time`, `runner`, `job`, `lane` or `turn`; empty if for nothing."""
    blocked_by: Blocker | None = None
    """What holds the lane, or which workflow's turn comes first."""
    started_at: datetime | None
    finished_at: datetime | None
    due_at: datetime | None
    answered_by: str | None


class WorkflowSummary(Reply):
    """A workflow without its steps."""

    id: Id
    name: str
    queue_id: Id
    state: WorkflowState
    approve_all: bool
    plan_only: bool
    cancel_requested: bool
    labels: dict[str, str]
    created_at: datetime
    created_by: str
    finished_at: datetime | None


class WorkflowReply(WorkflowSummary):
    """A workflow with its steps; `revision` grows with every change."""

    revision: int
    steps: list[StepReply]


class Approve(Request):
    """Approve a gate for exactly this digest."""

    digest: Digest
    comment: Text = ""


class Deny(Request):
    """Deny a gate; with `skip`, steps that need it are skipped and the rest goes on."""

    digest: Digest
    comment: Text = ""
    skip: bool = False


class SkipStep(Request):
    """Skip a step."""

    reason: Annotated[Text, StringConstraints(min_length=3)]


class SendEvent(Request):
    """Answer a step that waits for an external event."""

    outputs: Outputs = {}


class SetApproveAll(Request):
    """Switch automatic approval of gates on or off."""

    approve_all: bool
