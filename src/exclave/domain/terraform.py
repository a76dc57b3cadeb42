"""Terraform states: their versions, their locks, and why one is refused."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, NotRequired, TypedDict

from exclave.base.errors import Kind, Problem
from exclave.domain.identity import OrgId, QueueId
from exclave.domain.jobs import ExecutionId


class LockHeld(Problem):
    """Another running execution holds the lock of the workspace."""

    kind: ClassVar = Kind.CONFLICT
    code: ClassVar = "lock_held"
    hint: ClassVar = "Wait until it has ended; the lock of an ended execution is free by itself."


class StateRefused(Problem):
    """A state version that does not succeed the latest one; nothing was stored."""

    kind: ClassVar = Kind.CONFLICT
    code: ClassVar = "state_refused"
    hint: ClassVar = "Plan again: the state has changed, or belongs to another workspace."


class StoredResource(TypedDict):
    """A resource of a state, as it is stored with a version."""

    address: str
    type: str
    id: NotRequired[str]


class LockDescription(TypedDict, total=False):
    """Who holds a lock and why, in Terraform's words, as it is stored with the lock."""

    id: str
    operation: str
    info: str
    who: str
    version: str
    created: str


@dataclass(frozen=True, slots=True)
class StateVersion:
    """A version of the state of a workspace; the bytes are sealed."""

    org_id: OrgId
    queue_id: QueueId
    workspace: str
    version: int
    serial: int
    lineage: str
    sha256: str
    size: int
    blob: str
    resources: Sequence[StoredResource]
    epoch: int
    execution_id: ExecutionId
    """The execution that wrote it."""
    at: datetime
    restored_from: int | None
    """The version whose bytes these are, if it was restored."""

    @property
    def origin(self) -> int:
        """The version that was written with these bytes."""
        return self.version if self.restored_from is None else self.restored_from


@dataclass(frozen=True, slots=True)
class NewStateVersion:
    """A version that is about to be stored."""

    serial: int
    lineage: str
    sha256: str
    size: int
    blob: str
    resources: Sequence[StoredResource]
    restored_from: int | None = None


@dataclass(frozen=True, slots=True)
class StateLock:
    """The lock of a workspace's state."""

    org_id: OrgId
    queue_id: QueueId
    workspace: str
    lock_id: str
    info: LockDescription
    execution_id: ExecutionId
    epoch: int
    at: datetime
    is_stale: bool
    """Whether its execution has ended: the next one takes the lock without asking."""
