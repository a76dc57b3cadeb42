"""Workflows and steps with everything that is stored about them, for people to read.

Decisions need less, and read it for every event: see `Workflow` and `Step`.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from exclave.base.json_values import JsonObject
from exclave.domain.identity import AccountId, QueueId, TokenId
from exclave.domain.jobs import JobId, JobKind, JobState
from exclave.domain.workflows import StepKind, StepState, WorkflowId, WorkflowState


class WorkflowRecord(NamedTuple):
    """A workflow without its steps."""

    id: WorkflowId
    queue_id: QueueId
    name: str
    kind: str
    """The `WorkflowKind` of an install's workflow; empty for any other."""
    state: WorkflowState
    approve_all: bool
    plan_only: bool
    cancel_requested: bool
    revision: int
    labels: Mapping[str, str]
    created_at: datetime
    created_by: str
    finished_at: datetime | None
    sealed: Mapping[str, str] | None
    """Sensitive values that its steps were given, encrypted."""
    by_person: AccountId | None
    by_token: TokenId | None


class StepRecord(NamedTuple):
    """A step, with the state of its job if it has one."""

    position: int
    name: str
    kind: StepKind
    state: StepState
    needs: tuple[int, ...]
    lanes: tuple[str, ...]
    mutating: bool
    attempt: int
    digest: str
    reason: str
    message: str
    spec: JsonObject
    outputs: JsonObject
    job_id: JobId | None
    answered_by: str | None
    started_at: datetime | None
    finished_at: datetime | None
    due_at: datetime | None
    job_state: JobState | None
    job_kind: JobKind | None
