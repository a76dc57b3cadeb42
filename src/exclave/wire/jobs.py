"""Job specifications and what the control plane tells about jobs."""

import math
from datetime import datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints, model_validator
from pydantic import JsonValue as JsonValue

from exclave.domain.jobs import ExecutionState as ExecutionState
from exclave.domain.jobs import JobKind as JobKind
from exclave.domain.jobs import JobState as JobState
from exclave.domain.jobs import OutcomeState as OutcomeState
from exclave.domain.jobs import Reason as Reason
from exclave.wire.model import Id, Name, Reply, Request, Text

EnvName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,127}$")]
EnvValue = Annotated[str, StringConstraints(max_length=32_768, pattern=r"^[^\x00]*$")]
Env = Annotated[dict[EnvName, EnvValue], Field(max_length=200)]
Argument = Annotated[str, StringConstraints(max_length=32_768, pattern=r"^[^\x00]*$")]
TimeoutS = Annotated[float, Field(gt=0, le=6 * 3600)]


def check_storable(value: JsonValue) -> JsonValue:
    """Refuse what JSON or a database cannot hold: infinite numbers, NUL characters."""
    match value:
        case dict():
            for key, part in value.items():
                check_storable(key)
                check_storable(part)
        case list():
            for part in value:
                check_storable(part)
        case float() if not math.isfinite(value):
            message = "a number is too large"
            raise ValueError(message)
        case str() if "\0" in value:
            message = "text may not contain a NUL character"
            raise ValueError(message)
        case _:
            pass
    return value


Outputs = Annotated[dict[str, JsonValue], Field(max_length=1000), AfterValidator(check_storable)]
"""What a job or an outside event brings along."""


class ScriptStep(Request):
    """One command: `argv` as data, or `script` text for an interpreter; exactly one of them."""

    name: Name
    argv: Annotated[list[Argument], Field(min_length=1, max_length=1000)] | None = None
    script: Annotated[str, StringConstraints(max_length=262_144, pattern=r"^[^\x00]*$")] | None = (
        None
    )
    interpreter: Annotated[list[Argument], Field(min_length=1, max_length=10)] = ["sh", "-eu"]
    env: Env = {}
    timeout_s: TimeoutS | None = None

    @model_validator(mode="after")
    def _has_one_form(self) -> "ScriptStep":
        if (self.argv is None) == (self.script is None):
            message = "give exactly one of `argv` and `script`"
            raise ValueError(message)
        return self


class ScriptSpec(Request):
    """Commands that run in order in a fresh folder; the first failure ends the job.

    A command writes outputs to the file named by `$EXCLAVE_OUTPUTS`: `key=value` lines or one JSON
    object. `secrets` maps an environment variable to the name of a secret that the runner holds.
    """

    kind: Literal["script"] = "script"
    steps: Annotated[list[ScriptStep], Field(min_length=1, max_length=100)]
    env: Env = {}
    secrets: Annotated[dict[EnvName, Name], Field(max_length=100)] = {}
    timeout_s: TimeoutS = 3600.0


class NoopSpec(Request):
    """Does nothing, all the way through the protocol."""

    kind: Literal["noop"] = "noop"
    timeout_s: TimeoutS = 60.0


JobSpec = Annotated[ScriptSpec | NoopSpec, Field(discriminator="kind")]


class ExecutionReply(Reply):
    """One attempt to run a job."""

    id: Id
    runner_id: Id
    state: ExecutionState
    epoch: int
    offered_at: datetime
    started_at: datetime | None
    renewed_at: datetime | None
    ended_at: datetime | None
    reason: Reason | None
    log_bytes: int
    log_complete: bool


class JobReply(Reply):
    """A job as people see it."""

    id: Id
    queue_id: Id
    workflow_id: Id | None
    step: str | None
    kind: JobKind
    mutating: bool
    lanes: list[str]
    state: JobState
    priority: int
    attempts: int
    cancel_requested_at: datetime | None
    reason: Reason | None
    message: str
    exit_code: int | None
    outputs: dict[str, JsonValue]
    created_at: datetime
    finished_at: datetime | None
    executions: list[ExecutionReply] = []


class DeclareLost(Request):
    """A person says that the machine which ran the job is gone."""

    reason: Annotated[Text, StringConstraints(min_length=3)]


class LaneReply(Reply):
    """One lane of an install."""

    name: str
    state: Literal["free", "busy", "needs_reconcile"]
    epoch: int
    execution_id: Id | None
    reason: str
    changed_at: datetime


class ReleaseLane(Request):
    """A person says that the lane's resources were checked and may be worked on again."""

    reason: Annotated[Text, StringConstraints(min_length=3)]
