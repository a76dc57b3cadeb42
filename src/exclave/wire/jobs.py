"""Jobs, executions and lanes over the Control API; job specifications are in `specs`."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import JsonValue as JsonValue
from pydantic import StringConstraints

from exclave.domain.jobs import ExecutionState as ExecutionState
from exclave.domain.jobs import JobKind as JobKind
from exclave.domain.jobs import JobState as JobState
from exclave.domain.jobs import OutcomeState as OutcomeState
from exclave.domain.jobs import Reason as Reason
from exclave.wire.model import Id, Reply, Request, Text


class ExecutionReply(Reply):
    """One attempt to run a job."""

    id: Id
    runner_id: Id
    state: ExecutionState
    epoch: int
    offered_at: datetime
    started_at: datetime | None
    renewed_at: datetime | None
    ended_at: datetime | None
    reason: Reason | None
    log_bytes: int
    log_complete: bool


class Blocker(Reply):
    """Why a ready step or job has not started, and what to do about it."""

    lane: str | None
    """None if a runner is missing instead."""
    job_id: Id | None
    """The job that holds the lane, or that was lost on it."""
    workflow_id: Id | None
    message: str
    hint: str


class JobReply(Reply):
    """A job with its executions."""

    id: Id
    queue_id: Id
    workflow_id: Id | None
    step: str | None
    kind: JobKind
    mutating: bool
    lanes: list[str]
    state: JobState
    priority: int
    attempts: int
    cancel_requested_at: datetime | None
    reason: Reason | None
    message: str
    exit_code: int | None
    outputs: dict[str, JsonValue]
    created_at: datetime
    finished_at: datetime | None
    executions: list[ExecutionReply] = []
    blocked_by: Blocker | None = None
    """Why it is not offered to a runner; not set in lists."""


class DeclareLost(Request):
    """A declaration that the machine which ran the job is gone."""

    reason: Annotated[Text, StringConstraints(min_length=3)]


class LaneReply(Reply):
    """One lane of an install."""

    name: str
    state: Literal["free", "busy", "needs_reconcile"]
    epoch: int
    execution_id: Id | None
    reason: str
    changed_at: datetime


class ReleaseLane(Request):
    """A declaration that the lane's resources were checked and may be changed again."""

    reason: Annotated[Text, StringConstraints(min_length=3)]
