"""States on the wire: sealed documents of what is deployed, headers, locks."""

from typing import Annotated

from pydantic import Field, StringConstraints, ValidationError

from exclave.wire.model import Reply, Request
from exclave.wire.plans import Address
from exclave.wire.spec_fields import Workspace

MAX_ATTACHMENT = 64 << 20
"""Maximum size of a file that an execution uploads, and of a sealed state."""
MAX_HEADER = 4 << 20
"""Most bytes of the line that precedes a sealed state."""
MAX_STATE = MAX_ATTACHMENT - 1024
"""Maximum size of an unencrypted state; encryption adds less than the difference."""
MAX_FILE = MAX_ATTACHMENT + MAX_HEADER
"""Most bytes of a state with its header, which is also how one is rescued."""

LockId = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00]*$")]
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
