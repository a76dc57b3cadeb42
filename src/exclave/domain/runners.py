"""Runners and their enrolment as values."""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from exclave.base.json_values import JsonObject
from exclave.domain.identity import OrgId, QueueId, QueueKind, RunnerId

UNKNOWN_GENERATION = 0
"""After a restore: whatever generation a runner presents first is taken for its newest."""


class RunnerState(StrEnum):
    """Whether a runner may authenticate; only `active` ones may."""

    ACTIVE = "active"
    REVOKED = "revoked"
    LOCKED = "locked"
    """Two holders of its key were seen."""


class NewRunner(NamedTuple):
    """A runner that enrols."""

    org_id: OrgId
    id: RunnerId
    queue_id: QueueId
    kind: QueueKind
    name: str
    public_key: str
    version: str
    protocol: str
    capabilities: Sequence[str]


class Runner(NamedTuple):
    """A runner, with what it last said about itself."""

    org_id: OrgId
    id: RunnerId
    queue_id: QueueId
    kind: QueueKind
    name: str
    state: RunnerState
    state_reason: str
    public_key: str
    generation: int
    """Of its newest access token; an older one that is presented means a copied key."""
    generation_used: bool
    boot: int
    poll_no: int
    version: str
    protocol: str
    capabilities: Sequence[str]
    stats: JsonObject
    """Measurements of its process, as `wire.runner.Stats` describes them."""
    seen_at: datetime | None
    due_at: datetime | None
    """When its next sign of life is due."""
    cause: str
    """Why it is late, if that is known."""
    created_at: datetime
    alarm: str | None
    alarm_at: datetime | None


class Enrolment(NamedTuple):
    """A one-time token with which one runner joins a queue."""

    org_id: OrgId
    id: str
    queue_id: QueueId
    created_by: str
    expires_at: datetime
    used_at: datetime | None
    runner_id: RunnerId | None
    """The runner that has used it."""
