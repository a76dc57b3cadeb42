"""Terraform on the wire: states, locks, files of executions, readable plans."""

import json
from datetime import datetime
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    Field,
    JsonValue,
    StringConstraints,
    ValidationError,
    model_validator,
)

from exclave.domain.tf_addresses import read_address, read_name
from exclave.wire.model import Id, Reply, Request, Text
from exclave.wire.specs import Workspace, check_storable

MAX_ATTACHMENT = 64 << 20
"""Maximum size of a file that an execution uploads, and of a sealed state."""
MAX_HEADER = 4 << 20
"""Most bytes of the line that precedes a sealed state."""
MAX_STATE = MAX_ATTACHMENT - 1024
"""Maximum size of an unencrypted state; encryption adds less than the difference."""
MAX_FILE = MAX_ATTACHMENT + MAX_HEADER
"""Most bytes of a state with its header, which is also how one is rescued."""

AttachmentName = Literal["plan.sealed", "plan.json", "journal.jsonl", "errored.tfstate.sealed"]
"""The files that an execution may upload."""

LockId = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00]*$")]
Address = Annotated[str, AfterValidator(read_address)]
"""The address of a resource; an invalid one is replaced by a text that says so."""
OutputName = Annotated[str, AfterValidator(read_name)]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class StateResource(Request):
    """A resource in the header of a state: its address and type, never a value."""

    address: Address
    type: Annotated[str, StringConstraints(max_length=200)]
    id: Annotated[str, StringConstraints(max_length=2000)] = ""


class StateHeader(Request):
    """What the control plane knows of a state: enough to fence and order it."""

    serial: Annotated[int, Field(ge=0, le=2**53)]
    lineage: Annotated[str, StringConstraints(max_length=200, pattern=r"^[^\x00]*$")]
    sha256: Sha256
    resources: Annotated[list[StateResource], Field(max_length=20_000)] = []
    sealed_serial: Annotated[int, Field(ge=0, le=2**53)] | None = None
    """The serial inside the sealed bytes if an older version was restored; only in replies."""

    def write_line(self) -> bytes:
        """Return the header as a line, without unset fields, which older runners do not know."""
        return self.model_dump_json(exclude_none=True).encode() + b"\n"


class SealedState(Reply):
    """A state version: its header and the sealed bytes."""

    header: StateHeader
    sealed: bytes

    def pack(self) -> bytes:
        """Return the header as one line of JSON, followed by the sealed bytes."""
        return self.header.write_line() + self.sealed


def unpack_state(data: bytes) -> SealedState:
    """Return the state that `pack` wrote; `ValueError` if it is something else."""
    line, separator, sealed = data.partition(b"\n")
    if not separator or len(line) > MAX_HEADER:
        message = "a state begins with one line of JSON"
        raise ValueError(message)
    try:
        return SealedState(header=StateHeader.model_validate_json(line), sealed=sealed)
    except ValidationError as error:
        message = f"the header of the state is not valid: {error.errors()[0]['msg']}"
        raise ValueError(message) from error


class StateReply(Reply):
    """A state version is stored."""

    version: int


class LockInfo(Request):
    """Who holds a lock, as Terraform describes it."""

    id: LockId
    operation: Annotated[str, StringConstraints(max_length=200)] = ""
    info: Annotated[str, StringConstraints(max_length=2000)] = ""
    who: Annotated[str, StringConstraints(max_length=300)] = ""
    version: Annotated[str, StringConstraints(max_length=100)] = ""
    created: Annotated[str, StringConstraints(max_length=100)] = ""


class LockState(Request):
    """A request to lock a workspace."""

    workspace: Workspace
    epoch: Annotated[int, Field(ge=0, le=2**53)]
    lock: LockInfo


class UnlockState(Request):
    """A request to release a lock."""

    workspace: Workspace
    epoch: Annotated[int, Field(ge=0, le=2**53)]
    lock_id: LockId


class SensitiveValues(Reply):
    """The sensitive inputs that a running execution needs, in clear."""

    values: dict[str, str]


class AttachmentReply(Reply):
    """A file that an execution uploaded."""

    name: str
    digest: str
    size: int


class PlanAttribute(Reply):
    """One attribute of a planned change; a sensitive value is never here."""

    path: str
    before: JsonValue = None
    after: JsonValue = None
    sensitive: bool = False
    unknown: bool = False
    forces_replacement: bool = False


PlanAction = Literal[
    "create", "update", "replace", "delete", "read", "no-op", "import", "move", "forget"
]


class PlannedResource(Reply):
    """What would happen to one resource."""

    address: Address
    type: str
    name: str
    module: str = ""
    action: PlanAction
    reason: str = ""
    previous: Address = ""
    import_id: str = ""
    attributes: list[PlanAttribute] = []


class PlannedOutput(Reply):
    """What would happen to one output."""

    name: OutputName
    action: PlanAction
    before: JsonValue = None
    after: JsonValue = None
    sensitive: bool = False
    unknown: bool = False


class PlanSummary(Reply):
    """How many resources are touched, and how."""

    add: int = 0
    change: int = 0
    replace: int = 0
    destroy: int = 0
    imported: Annotated[int, Field(alias="import")] = 0
    move: int = 0
    outputs: int = 0

    model_config = {"populate_by_name": True, "extra": "ignore", "frozen": True}


class PolicyFinding(Reply):
    """A finding of a policy about a plan."""

    name: str
    level: Literal["deny", "warn", "pass"]
    message: str


class PlanDocument(Reply):
    """A readable plan, redacted on the runner before it was uploaded."""

    format: Literal[1] = 1
    destroy: bool = False
    tool: str = ""
    resources: list[PlannedResource] = []
    outputs: list[PlannedOutput] = []
    drift: list[PlannedResource] = []
    summary: PlanSummary = PlanSummary()
    policies: list[PolicyFinding] = []


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


def read_plan(data: bytes) -> PlanDocument:
    """Return a plan document; `ValueError` if it is something else."""
    try:
        return PlanDocument.model_validate(check_storable(json.loads(data)))
    except (ValidationError, RecursionError) as error:
        message = "this is not a plan document"
        raise ValueError(message) from error
