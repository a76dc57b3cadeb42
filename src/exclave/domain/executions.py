"""Executions as values: each is one attempt to run a job."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from exclave.domain.identity import OrgId, QueueId, RunnerId
from exclave.domain.jobs import ExecutionId, ExecutionState, JobId


class Execution(NamedTuple):
    """One attempt to run a job.

    A tuple, like all values that are read for each request of a runner: a frozen dataclass takes
    several times as long to make.
    """

    org_id: OrgId
    id: ExecutionId
    job_id: JobId
    queue_id: QueueId
    runner_id: RunnerId
    mutating: bool
    epoch: int
    state: ExecutionState
    boot: int
    """The boot of the runner that started it."""
    start_no: int
    """The number of the poll after which it was started, in that boot."""
    offered_at: datetime
    started_at: datetime | None
    renewed_at: datetime | None
    ended_at: datetime | None
    reason: str | None
    result_digest: str | None
    """Of the result that was recorded, by which a repeated one is known."""
    log_bytes: int
    log_end: int | None
    """The length of the whole log, as the runner announced it with the result."""
    log_pieces: int


class OpenExecution(NamedTuple):
    """An execution that has not ended, with the offer that its runner was made."""

    org_id: OrgId
    id: ExecutionId
    job_id: JobId
    queue_id: QueueId
    runner_id: RunnerId
    mutating: bool
    epoch: int
    state: ExecutionState
    boot: int
    start_no: int
    poll_nonce: str
    """Of the poll that the offer was made to."""
    envelope: str
    cancel_sent: bool
    cancel_requested_at: datetime | None
    """When somebody asked to cancel its job."""


class NewExecution(NamedTuple):
    """A job that is about to be offered to a runner."""

    org_id: OrgId
    id: ExecutionId
    job_id: JobId
    queue_id: QueueId
    runner_id: RunnerId
    mutating: bool
    lanes: Sequence[str]
    epoch: int
    poll_nonce: str
    envelope: str


class ResultReceipt(NamedTuple):
    """What is kept with an execution of the result that its runner handed in."""

    digest: str
    log_end: int
    log_sha256: str
