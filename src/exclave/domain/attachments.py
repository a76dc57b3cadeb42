"""Attachments: files that executions hand in."""

from dataclasses import dataclass
from datetime import datetime

from exclave.domain.identity import OrgId, QueueId
from exclave.domain.jobs import ExecutionId, JobId


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file of an execution."""

    org_id: OrgId
    execution_id: ExecutionId
    name: str
    queue_id: QueueId
    digest: str
    size: int
    blob: str
    at: datetime


@dataclass(frozen=True, slots=True)
class NewAttachment:
    """A file that is about to be stored."""

    name: str
    queue_id: QueueId
    digest: str
    size: int
    blob: str


@dataclass(frozen=True, slots=True)
class ListedAttachment(Attachment):
    """A file of an execution, with the job that was executed."""

    job_id: JobId
    epoch: int
