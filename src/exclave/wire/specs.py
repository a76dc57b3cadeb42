"""Job specifications by kind: exactly what a runner executes."""

import math
import re
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field, JsonValue, StringConstraints, model_validator

from exclave.base import job_limits
from exclave.wire.model import Id, Name, Request

Digest = Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")]
Repository = Annotated[
    str, StringConstraints(pattern=r"^[a-z0-9]+((\.|__?|-+|/)[a-z0-9]+)*$", max_length=200)
]
Workspace = Annotated[str, StringConstraints(pattern=r"^(sandbox|component:[a-z0-9][a-z0-9_-]*)$")]
"""The name of a Terraform state, which is also that of the lane that guards it."""
EnvName = Annotated[str, StringConstraints(pattern=f"^{job_limits.ENV_NAME}$")]
EnvValue = Annotated[str, StringConstraints(max_length=job_limits.VALUE, pattern=r"^[^\x00]*$")]
Env = Annotated[dict[EnvName, EnvValue], Field(max_length=200)]
Argument = Annotated[str, StringConstraints(max_length=job_limits.VALUE, pattern=r"^[^\x00]*$")]
TimeoutS = Annotated[float, Field(gt=0, le=6 * 3600)]


MOST_NESTED = 100
"""Maximum depth of a document. JSON parsers stop at 200, and documents are nested in others."""
_HALF_CHARACTER = re.compile("[\ud800-\udfff]")


def check_storable(value: JsonValue) -> JsonValue:
    """Raise if JSON or a database cannot hold it: NUL, lone surrogates, deep nesting, infinity."""
    _check_levels(value, MOST_NESTED)
    return value


def _check_levels(value: JsonValue, levels: int) -> None:
    match value:
        case dict() | list() if not levels:
            message = f"it is nested deeper than {MOST_NESTED} levels"
            raise ValueError(message)
        case dict():
            for key, part in value.items():
                _check_levels(key, levels)
                _check_levels(part, levels - 1)
        case list():
            for part in value:
                _check_levels(part, levels - 1)
        case float() if not math.isfinite(value):
            message = "a number is too large"
            raise ValueError(message)
        case str() if "\0" in value:
            message = "text may not contain a NUL character"
            raise ValueError(message)
        case str() if _HALF_CHARACTER.search(value):
            message = "text may not contain half of a surrogate pair"
            raise ValueError(message)
        case _:
            pass


Outputs = Annotated[dict[str, JsonValue], Field(max_length=1000), AfterValidator(check_storable)]
"""The outputs of a job or an external event."""


class ScriptStep(Request):
    """One command: `argv` as data, or `script` text for an interpreter; exactly one of them."""

    name: Name
    argv: Annotated[list[Argument], Field(min_length=1, max_length=1000)] | None = None
    script: (
        Annotated[str, StringConstraints(max_length=job_limits.SCRIPT, pattern=r"^[^\x00]*$")]
        | None
    ) = None
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
    """A job that does nothing, to exercise the whole protocol."""

    kind: Literal["noop"] = "noop"
    timeout_s: TimeoutS = 60.0


OwnSpec = Annotated[ScriptSpec | NoopSpec, Field(discriminator="kind")]
"""The job kinds that custom workflows may use."""


class Artifact(Request):
    """An OCI artifact by its digest, never by a tag."""

    repository: Repository
    digest: Digest


class ActionStep(Request):
    """One script of an action: its text, or a command in the folder of its source."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=200)]
    argv: Annotated[list[Argument], Field(min_length=1, max_length=1000)] | None = None
    script: (
        Annotated[str, StringConstraints(max_length=job_limits.SCRIPT, pattern=r"^[^\x00]*$")]
        | None
    ) = None
    env: Env = {}
    artifact: Artifact | None = None

    @model_validator(mode="after")
    def _has_one_form(self) -> "ActionStep":
        if (self.argv is None) == (self.script is None):
            message = "give exactly one of `argv` and `script`"
            raise ValueError(message)
        return self


class ActionSpec(Request):
    """The steps of an action. Outputs are kept by step: `{"steps": {"<step>": {...}}, ...flat}`."""

    kind: Literal["action"] = "action"
    steps: Annotated[list[ActionStep], Field(min_length=1, max_length=100)]
    env: Env = {}
    role: Annotated[str, StringConstraints(max_length=200)] = ""
    timeout_s: TimeoutS = 3600.0


class RegoPolicy(Request):
    """A policy that a plan must pass."""

    name: Annotated[str, StringConstraints(max_length=200)]
    rego: Annotated[str, StringConstraints(max_length=job_limits.SCRIPT)]


class PlanRef(Request):
    """The plan to apply: uploaded by an earlier execution, approved by its digest."""

    execution_id: Id
    digest: Digest


class TerraformSpec(Request):
    """Plan a module, or apply exactly the plan that was approved.

    Placeholders `((exclave:secret:<name>))` and `((exclave:input:<name>))` in variables, variable
    files and the environment are filled in by the runner.
    """

    kind: Literal["terraform"] = "terraform"
    operation: Literal["plan", "apply"]
    destroy: bool = False
    workspace: Workspace
    artifact: Artifact
    tool: Literal["terraform", "tofu"] = "terraform"
    version: Annotated[str, StringConstraints(max_length=40)] = ""
    vars: Annotated[dict[str, str], Field(max_length=500)] = {}
    var_files: Annotated[list[str], Field(max_length=50)] = []
    env: Env = {}
    policies: Annotated[list[RegoPolicy], Field(max_length=100)] = []
    plan: PlanRef | None = None
    delay_s: Annotated[float, Field(ge=0, le=3600)] = 0.0
    """How long to wait before another try."""
    timeout_s: TimeoutS = 3600.0

    @model_validator(mode="after")
    def _applies_a_plan(self) -> "TerraformSpec":
        if (self.plan is not None) != (self.operation == "apply"):
            message = "`plan` belongs to the operation `apply`, and only to it"
            raise ValueError(message)
        return self


class UploadedSource(Request):
    """A folder of the app directory itself, as it was uploaded."""

    type: Literal["uploaded"] = "uploaded"
    config_id: Id
    archive_digest: Digest
    directory: Annotated[str, StringConstraints(max_length=1000)]


class GitSource(Request):
    """A folder of a repository; without `commit` the ref is resolved once, by the build."""

    type: Literal["git"] = "git"
    url: Annotated[str, StringConstraints(max_length=2000)]
    ref: Annotated[str, StringConstraints(max_length=300)]
    commit: Annotated[str, StringConstraints(pattern=r"^([0-9a-f]{40}|[0-9a-f]{64})?$")] = ""
    directory: Annotated[str, StringConstraints(max_length=1000)]
    connected: bool = False


ArtifactType = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,62}$")]
"""What an artifact is to be used as; a runner refuses to build a type that it cannot check."""
ACTION_SOURCE: Final = "action_source"
"""The type of artifacts that steps of actions run in."""
BuildSource = Annotated[UploadedSource | GitSource, Field(discriminator="type")]


class BuildSpec(Request):
    """Fetch a source, pack it into an artifact, push it with its provenance.

    Outputs: `digest` (of the manifest), `commit`, `size`, `files`, `provenance` (its digest).
    """

    kind: Literal["build"] = "build"
    build_id: Id
    part: Annotated[str, StringConstraints(max_length=200)]
    type: ArtifactType
    source: BuildSource
    repository: Repository
    timeout_s: TimeoutS = 300.0


class WantedSecret(Request):
    """A secret that the app declares; its value never leaves the customer's side."""

    name: Name
    required: bool = False
    auto_generate: bool = False
    default: Annotated[str, StringConstraints(max_length=job_limits.VALUE)] = ""


class SecretsSpec(Request):
    """Check which secrets exist, and generate those that are declared so.

    Outputs: `secrets`, by name `{"exists": bool, "length": int}`; lengths in steps of 16.
    """

    kind: Literal["secrets"] = "secrets"
    secrets: Annotated[list[WantedSecret], Field(max_length=200)]
    timeout_s: TimeoutS = 300.0


JobSpec = Annotated[
    ScriptSpec | NoopSpec | ActionSpec | TerraformSpec | BuildSpec | SecretsSpec,
    Field(discriminator="kind"),
]
