"""Queues, the lanes of a queue, and the tickets by which workflows take turns on them."""

from datetime import datetime
from typing import NamedTuple

from exclave.domain.identity import OrgId, QueueId, QueueKind
from exclave.domain.jobs import ExecutionId
from exclave.domain.lanes import LaneState
from exclave.domain.workflows import WorkflowId


class Queue(NamedTuple):
    """The jobs of one install, or the builds of an org."""

    org_id: OrgId
    id: QueueId
    kind: QueueKind


class Lane(NamedTuple):
    """A part of an install that must not be worked on twice at once."""

    name: str
    epoch: int
    state: LaneState
    execution_id: ExecutionId | None
    """Who holds it, or was lost on it."""
    reason: str
    changed_at: datetime


class Ticket(NamedTuple):
    """A workflow's place in line for a lane; the lowest number comes first."""

    lane: str
    workflow_id: WorkflowId
    seq: int
