"""Schedules of installs: crons of actions, scans for drift, and health checks after deploys."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum

from exclave.base.json_values import JsonObject
from exclave.domain.identity import InstallId, OrgId
from exclave.domain.workflows import WorkflowId

NEVER = datetime(9999, 1, 1, tzinfo=UTC)
"""When a schedule that cannot be followed is due."""


class ScheduleKind(StrEnum):
    """What a schedule starts."""

    ACTION = "action"
    DRIFT = "drift"
    HEALTH = "health"
    """Once, at the end of the time in which a component has to stay healthy."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """A cron of an install."""

    org: OrgId
    id: str
    install_id: InstallId
    kind: ScheduleKind
    subject: str
    """The name of the action, or of the part that is scanned or checked."""
    cron: str
    next_at: datetime
    note: str = ""
    """Why its last tick started nothing; empty if it did."""
    last_workflow_id: WorkflowId | None = None
    detail: JsonObject = field(default_factory=dict)
