"""The Runner API v1: enrolment, access tokens, polls, renewals, results."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints

from exclave.domain.capabilities import KINDS as KINDS
from exclave.domain.identity import QueueKind as QueueKind
from exclave.wire.jobs import JobKind, JsonValue, OutcomeState, Reason
from exclave.wire.model import Id, Name, Reply, Request
from exclave.wire.spec_fields import Digest, Outputs
from exclave.wire.specs import JobSpec

PROTOCOL_MAJOR = 1
PROTOCOL_MINOR = 2
OLDEST_MINOR = 0
"""Runners two minors behind still work."""
ROLES_MINOR = 2
"""The minor since which runners understand jobs that run with a role."""

Protocol = Annotated[str, StringConstraints(pattern=r"^\d{1,3}\.\d{1,3}$")]
PROTOCOL = f"{PROTOCOL_MAJOR}.{PROTOCOL_MINOR}"


def read_minor(protocol: Protocol) -> int:
    """Return the minor of a protocol version."""
    return int(protocol.partition(".")[2])


Key = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{43}$")]
"""32 bytes in base64url: an Ed25519 public key."""
Signature = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{86}$")]
Nonce = Annotated[str, StringConstraints(pattern=r"^[0-9A-Za-z_-]{16,64}$")]
Token = Annotated[str, StringConstraints(pattern=r"^xc[a-z]_[0-9a-z]{52}$")]
Count = Annotated[int, Field(ge=0, le=2**53)]
ShortText = Annotated[str, StringConstraints(max_length=200, pattern=r"^[^\x00]*$")]


class RunnerTimings(Reply):
    """Durations of the protocol, set by the control plane."""

    poll_hold_s: float
    renew_s: float
    deadman_read_only_s: float
    deadman_mutating_s: float
    cancel_grace_s: float
    cancel_grace_mutating_s: float
    result_retry_s: float


class ServerKey(Reply):
    """A key that signs envelopes. All but the first are vouched for by an earlier one."""

    kid: Name
    public_key: Key
    signed_by: Name | None = None
    signature: Signature | None = None


class ServerKeys(Reply):
    """The chain of signing keys, oldest first."""

    keys: list[ServerKey]


class Enrol(Request):
    """Exchange a one-time token for an identity bound to the runner's own key."""

    token: Token
    public_key: Key
    name: Name
    version: ShortText
    protocol: Protocol
    capabilities: Annotated[list[JobKind], Field(max_length=50)]


class Enrolled(Reply):
    """The new identity, and the keys to pin."""

    runner_id: Id
    org_id: Id
    queue_id: Id
    kind: QueueKind
    generation: int
    keys: list[ServerKey]
    timings: RunnerTimings


class AskNonce(Request):
    """A request for a nonce, to prove possession of the key."""

    runner_id: Id


class NonceReply(Reply):
    """A nonce, to be signed within ten minutes."""

    nonce: Nonce


class AskToken(Request):
    """A request for an access token, with a signature over `token_message` as proof of the key."""

    runner_id: Id
    nonce: Nonce
    generation: Count
    signature: Signature


class TokenReply(Reply):
    """A short-lived access token, and the generation to present next time."""

    access_token: Token
    expires_in_s: float
    generation: int
    next_nonce: Nonce | None = None
    """The nonce for the next token, which saves a request."""
    timings: RunnerTimings


def token_message(runner_id: str, nonce: str, generation: int) -> bytes:
    """Return the bytes that a runner signs to get an access token."""
    return f"exclave-token-v1\n{runner_id}\n{nonce}\n{generation}".encode()


class Numbered(Request):
    """Base of requests that concern the whole runner process.

    `boot` counts starts of the runner, `no` counts requests of this process; both only grow.
    """

    boot: Count
    no: Count


class Stats(Request):
    """Measurements of the runner's own process."""

    load: Annotated[float, Field(ge=0, le=1e9)] = 0.0
    memory_bytes: Count = 0
    disk_free_bytes: Count = 0
    log_backlog_bytes: Count = 0
    results_waiting: Count = 0
    envelopes_refused: Count = 0
    jobs_finished: Count = 0
    disabled: bool = False
    """The customer has disabled the runner: it is connected but accepts no work."""


class Poll(Numbered):
    """A request for work. The same nonce gets the same offers again, so a reply may get lost."""

    nonce: Nonce
    free: Annotated[int, Field(ge=0, le=64)]
    executions: Annotated[list[Id], Field(max_length=128)]
    max_hold_s: Annotated[float, Field(ge=0, le=3600)] = 30.0
    version: ShortText
    protocol: Protocol
    capabilities: Annotated[list[JobKind], Field(max_length=50)]
    stats: Stats | None = None
    """With them a poll replaces a heartbeat."""


class Offer(Reply):
    """A signed envelope; the ids beside it only help to report a refusal."""

    execution_id: Id
    epoch: int
    envelope: Annotated[str, StringConstraints(max_length=8_000_000)]


class PollReply(Reply):
    """Offers to start, executions to cancel, and whether to report the Stack."""

    offers: list[Offer] = []
    cancel: list[Id] = []
    renew_s: float
    report: bool = False
    """What the app requires of the customer may have changed: the Stack should report now."""


class RenewedExecution(Request):
    """An execution that this process still runs."""

    id: Id
    epoch: Count
    log_end: Count = 0


class Renew(Numbered):
    """A renewal of executions; also the heartbeat of an idle runner."""

    executions: Annotated[list[RenewedExecution], Field(max_length=128)]
    stats: Stats = Stats()


class RenewReply(Reply):
    """What to do with each execution, and when to renew next."""

    verdicts: dict[Id, Literal["ok", "cancel", "superseded"]]
    renew_s: float


class Start(Numbered):
    """A request for permission to start: no work is done before the reply."""

    epoch: Count


class StartReply(Reply):
    """Permission to start, unless the job was cancelled in between."""

    cancel: bool


class Outcome(Request):
    """How an execution ended."""

    state: OutcomeState
    reason: Reason
    message: Annotated[
        str, StringConstraints(max_length=4000), AfterValidator(lambda text: text.replace("\0", ""))
    ] = ""
    exit_code: Annotated[int, Field(ge=-(2**31), lt=2**31)] | None = None
    outputs: Outputs = {}
    log_end: Count = 0
    log_sha256: Annotated[str, StringConstraints(pattern=r"^([0-9a-f]{64})?$")] = ""


class Result(Request):
    """The outcome under its epoch; sent until it is acknowledged."""

    epoch: Count
    outcome: Outcome


class ResultReply(Reply):
    """The result is recorded; it may be sent more than once."""

    recorded: bool


class LogReply(Reply):
    """The offset up to which the log is stored."""

    next_offset: int


class Dispatch(Request):
    """The payload of a signed envelope: exactly what runs, where, and until when it may start."""

    v: Literal[1] = 1
    org_id: Id
    queue_id: Id
    runner_id: Id
    job_id: Id
    execution_id: Id
    epoch: Count
    sequence: Count
    nonce: Nonce
    issued_at: datetime
    expires_at: datetime
    mutating: bool
    lanes: Annotated[list[ShortText], Field(max_length=50)]
    spec: JobSpec
    inputs: dict[str, JsonValue] = {}
    approved_digest: Digest | None = None
