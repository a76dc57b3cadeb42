"""Jobs and their executions: states, exit reasons, and what an ending or a silence leads to."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import ClassVar, NamedTuple, NewType

from exclave.base.errors import Kind, Problem
from exclave.base.json_values import JsonObject
from exclave.domain.identity import OrgId, QueueId
from exclave.domain.timings import Timings
from exclave.domain.workflows import WorkflowId

JobId = NewType("JobId", str)
ExecutionId = NewType("ExecutionId", str)


class JobKind(StrEnum):
    """What a runner can be asked to do."""

    SCRIPT = "script"
    NOOP = "noop"
    ACTION = "action"
    TERRAFORM = "terraform"
    HELM = "helm"
    MANIFEST = "manifest"
    HEALTH = "health"
    IMAGE = "image"
    BUILD = "build"
    SECRETS = "secrets"


IDEMPOTENT = frozenset({JobKind.HELM, JobKind.MANIFEST, JobKind.IMAGE})
"""Kinds whose changes may be made twice: a lost apply needs a new plan, and no person.

Their runner compares what it finds with what was approved before it changes anything, and keeps a
list of all that it may have created.
"""


class JobState(StrEnum):
    """Where a job stands; the last four never change."""

    QUEUED = "queued"
    OFFERED = "offered"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    LOST = "lost"

    @property
    def is_final(self) -> bool:
        """Whether the job has ended."""
        return self not in {JobState.QUEUED, JobState.OFFERED, JobState.RUNNING}


class ExecutionState(StrEnum):
    """One attempt to run a job: handed out, at work, over."""

    OFFERED = "offered"
    RUNNING = "running"
    ENDED = "ended"


class OutcomeState(StrEnum):
    """How an execution ended, in the runner's words.

    `interrupted` means: it did not finish, and nothing of it runs any more.
    """

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    INTERRUPTED = "interrupted"


class Reason(StrEnum):
    """Why a job ended: a closed list, so that people and programs can act on it."""

    COMPLETED = "completed"
    EXIT_CODE = "exit_code"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"
    DEADMAN = "deadman"
    RUNNER_RESTARTED = "runner_restarted"
    RUNNER_SILENT = "runner_silent"
    RUNNER_STOPPED_IT = "runner_stopped_it"
    DECLARED_LOST = "declared_lost"
    RESTORED = "restored"
    ENVELOPE_REFUSED = "envelope_refused"
    KIND_UNSUPPORTED = "kind_unsupported"
    TOOL_MISSING = "tool_missing"
    SPAWN_FAILED = "spawn_failed"
    DISK_FULL = "disk_full"
    SECRET_MISSING = "secret_missing"  # noqa: S105 - a reason, not a secret
    OUTPUTS_INVALID = "outputs_invalid"
    RUNNER_ERROR = "runner_error"
    TOO_MANY_ATTEMPTS = "too_many_attempts"
    RENDER_FAILED = "render_failed"
    NOT_BUILT = "not_built"
    SOURCE_UNAVAILABLE = "source_unavailable"
    SOURCE_INVALID = "source_invalid"
    ARTIFACT_UNAVAILABLE = "artifact_unavailable"
    ARTIFACT_TAMPERED = "artifact_tampered"
    SYNTAX = "syntax"
    LOCK_HELD = "lock_held"
    ACCESS_DENIED = "access_denied"
    QUOTA = "quota"
    PROVIDER_UNAVAILABLE = "provider_unavailable"
    NETWORK = "network"
    PLAN_STALE = "plan_stale"
    PLAN_MISSING = "plan_missing"
    POLICY_DENIED = "policy_denied"
    STATE_REFUSED = "state_refused"
    DISABLED = "disabled"
    CLUSTER_UNREACHABLE = "cluster_unreachable"
    OBJECT_REFUSED = "object_refused"
    ROLLOUT_FAILED = "rollout_failed"
    HOOK_FAILED = "hook_failed"
    RELEASE_BUSY = "release_busy"
    LEFTOVERS = "leftovers"
    IMAGE_UNAVAILABLE = "image_unavailable"
    SIGNATURE_MISSING = "signature_missing"
    ROLE_UNKNOWN = "role_unknown"
    ROLE_DISABLED = "role_disabled"
    PLAN_ONLY = "plan_only"
    METADATA_OPEN = "metadata_open"
    SECRET_READ_ONLY = "secret_read_only"  # noqa: S105 - a reason, not a secret


class NewJob(NamedTuple):
    """A job that is about to be queued."""

    org_id: OrgId
    id: JobId
    queue_id: QueueId
    workflow_id: WorkflowId
    step: int
    step_name: str
    step_attempt: int
    kind: JobKind
    mutating: bool
    lanes: Sequence[str]
    priority: int
    spec: JsonObject
    inputs: JsonObject
    """The outputs of the steps before, by their names."""
    approved_digest: str | None
    """Of the plan that the job applies."""


class Job(NamedTuple):
    """A job, without what only its runner is given."""

    org_id: OrgId
    id: JobId
    queue_id: QueueId
    workflow_id: WorkflowId
    step: int
    step_name: str
    step_attempt: int
    kind: JobKind
    mutating: bool
    lanes: Sequence[str]
    priority: int
    spec: JsonObject
    state: JobState
    attempts: int
    cancel_requested_at: datetime | None
    reason: str | None
    message: str
    exit_code: int | None
    outputs: JsonObject
    created_at: datetime
    finished_at: datetime | None


class EndedJob(NamedTuple):
    """A job that has just ended: what it was, and which step it belongs to."""

    org_id: OrgId
    id: JobId
    queue_id: QueueId
    kind: JobKind
    spec: JsonObject
    workflow_id: WorkflowId
    step: int
    step_name: str
    step_attempt: int


@dataclass(frozen=True, slots=True)
class JobEnding:
    """What becomes of a job when one of its executions is over."""

    state: JobState
    reason: Reason
    blocks_lanes: bool = False


class Superseded(Problem):
    """The execution is over, or a newer one holds its lanes: this writer is late."""

    kind: ClassVar = Kind.CONFLICT
    code: ClassVar = "superseded"
    hint: ClassVar = "Stop the work: this execution may no longer write."


class StaleRequest(Problem):
    """An older request arrived after a newer one; it is ignored."""

    kind: ClassVar = Kind.CONFLICT
    code: ClassVar = "stale_request"
    hint: ClassVar = "Send a request with a higher number."


def end_by_result(
    outcome: OutcomeState, reason: Reason, *, mutating: bool, attempts: int, timings: Timings
) -> JobEnding:
    """Decide what the reported outcome makes of the job."""
    match outcome:
        case OutcomeState.SUCCEEDED:
            return JobEnding(JobState.SUCCEEDED, reason)
        case OutcomeState.FAILED:
            return JobEnding(JobState.FAILED, reason)
        case OutcomeState.CANCELLED:
            return JobEnding(JobState.CANCELLED, reason)
        case OutcomeState.INTERRUPTED:
            return end_unfinished(reason, mutating=mutating, attempts=attempts, timings=timings)


def end_unfinished(
    reason: Reason,
    *,
    mutating: bool,
    attempts: int,
    timings: Timings,
    kind: JobKind | None = None,
) -> JobEnding:
    """Decide about work that stopped half-way: repeat what only reads, never what changes.

    The lanes of a lost change stay blocked, unless its kind is one that plans find their way from.
    """
    if mutating:
        return JobEnding(JobState.LOST, reason, blocks_lanes=kind not in IDEMPOTENT)
    if attempts < timings.max_attempts:
        return JobEnding(JobState.QUEUED, reason)
    return JobEnding(JobState.LOST, Reason.TOO_MANY_ATTEMPTS)


@dataclass(frozen=True, slots=True)
class Silence:
    """The last signs of life that are too old to wait any longer: from `since`, before `until`."""

    since: datetime
    until: datetime


def find_silence(
    now: datetime, listening_since: datetime, *, mutating: bool, timings: Timings
) -> Silence:
    """Decide after which silence running work is given up, if we have listened all the time.

    What was silent before we began to listen counts as heard then; changes get a grace on top.
    """
    patience = timings.lost_mutating_s if mutating else timings.lost_read_only_s
    grace = timings.start_grace_s if mutating else 0.0
    until = now - timedelta(seconds=patience)
    listened = listening_since + timedelta(seconds=grace) <= until
    return Silence(_EVER if listened else listening_since, until)


_EVER = datetime(1970, 1, 1, tzinfo=UTC)
