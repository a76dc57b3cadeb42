"""Workspaces on the wire as people see them: state versions, locks, orphans; and job files."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, model_validator

from exclave.wire.model import Id, Reply, Request, Text
from exclave.wire.states import StateResource

AttachmentName = Literal["plan.sealed", "plan.json", "journal.jsonl", "errored.tfstate.sealed"]
"""The files that an execution may upload."""


class SensitiveValues(Reply):
    """The sensitive inputs that a running execution needs, in clear."""

    values: dict[str, str]


class AttachmentReply(Reply):
    """A file that an execution uploaded."""

    name: str
    digest: str
    size: int


class TfStateReply(Reply):
    """A version of a Terraform state as the control plane knows it."""

    workspace: str
    version: int
    serial: int
    lineage: str
    sha256: str
    size: int
    resources: list[StateResource]
    execution_id: Id
    at: datetime
    restored_from: int | None = None
    """The older version whose bytes these are, if a person restored it."""


class TfLockReply(Reply):
    """A lock that is held."""

    workspace: str
    lock_id: str
    operation: str
    who: str
    execution_id: Id
    at: datetime
    stale: bool
    """Whether its execution has ended, so that the next one can acquire the lock."""


class TfWorkspaceReply(Reply):
    """A workspace of an install: its newest state and its lock."""

    workspace: str
    newest: TfStateReply | None = None
    lock: TfLockReply | None = None


class TfWorkspaceDetail(TfWorkspaceReply):
    """A workspace with the versions of its state, newest first, without their resources."""

    versions: list[TfStateReply]


class RescuedState(Reply):
    """The header of a state that a runner could not store normally and uploaded as a file."""

    execution_id: Id
    job_id: Id
    workspace: str
    serial: int
    lineage: str
    sha256: str
    size: int
    resources: int
    at: datetime
    misfit: str
    """Why it cannot be restored; empty if it can."""


class RestoreState(Request):
    """Make the state that an execution rescued, or an older version, the next version."""

    execution_id: Id | None = None
    version: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = None
    reason: Annotated[Text, StringConstraints(min_length=3)]

    @model_validator(mode="after")
    def _names_one(self) -> "RestoreState":
        if (self.execution_id is None) == (self.version is None):
            message = "give exactly one of `execution_id` and `version`"
            raise ValueError(message)
        return self


class UnlockWorkspace(Request):
    """Remove a lock that an ended execution left behind; the reason goes to the audit log."""

    reason: Text


Certainty = Literal["created", "unknown", "planned"]


class Orphan(Reply):
    """A resource that an interrupted apply created, or may have created, and that no state has."""

    workspace: str
    address: str
    type: str
    certainty: Certainty
    """`unknown`: it was begun. `planned`: nobody saw it begin, but the runner died meanwhile."""
    id_key: str = ""
    id: str = ""
    import_block: str = ""
    execution_id: Id
    job_id: Id
    at: datetime | None = None


class OrphansReply(Reply):
    """Orphaned resources of an install."""

    orphans: list[Orphan]
    unread: list[Id] = []
    """Executions whose journals were read only in part, or not at all."""
