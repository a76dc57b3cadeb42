"""Job specifications by kind: exactly what a runner executes."""

from typing import Annotated, Final, Literal, Self

from pydantic import (
    Field,
    SerializerFunctionWrapHandler,
    StringConstraints,
    model_serializer,
    model_validator,
)

from exclave.base import job_limits
from exclave.wire.images import ImageSource, ImageSpec
from exclave.wire.kubernetes import ClusterRef, HealthSpec, HelmSpec, ManifestSpec
from exclave.wire.model import Id, Name, Request
from exclave.wire.roles import JobRole
from exclave.wire.spec_fields import (
    Argument,
    Artifact,
    Digest,
    Env,
    EnvName,
    EnvValue,
    PlanRef,
    RegoPolicy,
    Repository,
    TimeoutS,
    Workspace,
)


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
    role: JobRole = None
    timeout_s: TimeoutS = 3600.0


class NoopSpec(Request):
    """A job that does nothing, to exercise the whole protocol."""

    kind: Literal["noop"] = "noop"
    timeout_s: TimeoutS = 60.0


OwnSpec = Annotated[ScriptSpec | NoopSpec, Field(discriminator="kind")]
"""The job kinds that custom workflows may use."""


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
    role: JobRole = None
    kube_config: Literal["none", "optional", "required"] = "none"
    """Whether commands get access to `cluster`; `optional` access is given where it is known."""
    cluster: ClusterRef | None = None
    timeout_s: TimeoutS = 3600.0

    @model_serializer(mode="wrap")
    def _leave_out_the_cluster(self, dump: SerializerFunctionWrapHandler) -> dict[str, object]:
        """Leave out what runners before Kubernetes do not know, unless it is used."""
        fields: dict[str, object] = dump(self)
        if self.cluster is None:
            del fields["kube_config"], fields["cluster"]
        return fields


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
    role: JobRole = None
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


class ChartSource(Request):
    """A chart of a chart repository; the build resolves `version`, which may be a constraint."""

    type: Literal["chart"] = "chart"
    url: Annotated[str, StringConstraints(max_length=2000, pattern=r"^(https?|oci)://[^\s@]+$")]
    chart: Annotated[str, StringConstraints(max_length=250, pattern=r"^[A-Za-z0-9][\w./-]*$")]
    version: Annotated[str, StringConstraints(max_length=200)] = ""
    """Empty: the newest stable one."""


ArtifactType = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,62}$")]
"""What an artifact is to be used as; a runner refuses to build a type that it cannot check."""
ACTION_SOURCE: Final = "action_source"
"""The type of artifacts that steps of actions run in."""
BuildSource = Annotated[
    UploadedSource | GitSource | ChartSource | ImageSource, Field(discriminator="type")
]


RelativePath = Annotated[
    str, StringConstraints(min_length=1, max_length=1000, pattern=r"^[^/\x00][^\x00]*$")
]


class KustomizeOptions(Request):
    """How an overlay is built; paths are relative to the folder of the source."""

    path: RelativePath
    patches: Annotated[list[RelativePath], Field(max_length=100)] = []
    enable_helm: bool = False
    restrict: bool = True
    """Whether the overlay may read no files outside of its own folder."""


ImagePlatform = Annotated[
    str, StringConstraints(max_length=50, pattern=r"^linux/[a-z0-9]+(/v[0-9]+)?$")
]


class DockerOptions(Request):
    """How an image is built from a Dockerfile in the folder of the source."""

    dockerfile: RelativePath
    build_args: Annotated[dict[EnvName, EnvValue], Field(max_length=200)] = {}
    target: Annotated[str, StringConstraints(max_length=100, pattern=r"^[\w.-]*$")] = ""
    """The stage to build; empty: the last one."""
    context: RelativePath = "."
    """The folder that the Dockerfile copies from, in the folder of the source."""
    platforms: Annotated[list[ImagePlatform], Field(max_length=10)] = []
    """Empty: that of the runner. Several make an index."""
    secrets: Annotated[list[Name], Field(max_length=100)] = []
    """Names of secrets of the runner that the Dockerfile may mount."""

    @model_serializer(mode="wrap")
    def _leave_out_unused(self, dump: SerializerFunctionWrapHandler) -> dict[str, object]:
        """Leave out what older runners do not know, unless it is used."""
        unused = {"context": ".", "platforms": [], "secrets": []}
        fields: dict[str, object] = dump(self)
        return {key: value for key, value in fields.items() if unused.get(key, ...) != value}


class BuildSpec(Request):
    """Fetch a source, pack it into an artifact, push it with its provenance.

    Outputs: `digest` (of the manifest), `commit`, `size`, `files`, `provenance` (its digest),
    `policies` (findings about an image, if there are any).
    """

    kind: Literal["build"] = "build"
    build_id: Id
    part: Annotated[str, StringConstraints(max_length=200)]
    type: ArtifactType
    source: BuildSource
    repository: Repository
    policies: Annotated[list[RegoPolicy], Field(max_length=100)] = []
    """What an image has to pass before the build can be used."""
    kustomize: KustomizeOptions | None = None
    """Only for overlays."""
    docker: DockerOptions | None = None
    """Only for images that are built."""
    timeout_s: TimeoutS = 300.0

    @model_serializer(mode="wrap")
    def _leave_out_unused(self, dump: SerializerFunctionWrapHandler) -> dict[str, object]:
        """Leave out what older runners do not know, unless it is used."""
        fields: dict[str, object] = dump(self)
        if not self.policies:
            del fields["policies"]
        if self.kustomize is None:
            del fields["kustomize"]
        return fields


class WantedSecret(Request):
    """A secret that the app declares; its value never leaves the customer's side."""

    name: Name
    required: bool = False
    auto_generate: bool = False
    default: Annotated[str, StringConstraints(max_length=job_limits.VALUE)] = ""


class SecretTarget(Request):
    """A key of a Kubernetes Secret that receives the value of a secret."""

    secret: Name
    namespace: Annotated[str, StringConstraints(min_length=1, max_length=63)]
    name: Annotated[str, StringConstraints(min_length=1, max_length=253)]
    key: Annotated[str, StringConstraints(pattern=r"^[-._a-zA-Z0-9]{1,253}$")]
    base64: bool = False
    """Whether the value is base64 text that is decoded first."""
    restart: bool = False
    """Whether workloads that read the Secret are restarted when the value changes."""


class SecretsSpec(Request):
    """Check which secrets exist, generate those that are declared so, and put them into a cluster.

    What was put there before and is no target any more is removed; without any target, so are the
    namespaces that were made for it, unless something else is in them.
    Outputs: `secrets`, by name `{"exists": bool, "length": int}`; lengths in steps of 16.
    """

    kind: Literal["secrets"] = "secrets"
    secrets: Annotated[list[WantedSecret], Field(max_length=200)]
    targets: Annotated[list[SecretTarget], Field(max_length=1000)] = []
    cluster: ClusterRef | None = None
    adopt: bool = False
    """Whether the cluster may be another one than that which has the copies: those stay there."""
    role: JobRole = None
    timeout_s: TimeoutS = 300.0

    @model_validator(mode="after")
    def _has_a_cluster(self) -> Self:
        if self.targets and self.cluster is None:
            message = "`targets` need a `cluster`"
            raise ValueError(message)
        return self

    @model_serializer(mode="wrap")
    def _leave_out_the_cluster(self, dump: SerializerFunctionWrapHandler) -> dict[str, object]:
        """Leave out what runners before Kubernetes do not know, unless it is used."""
        fields: dict[str, object] = dump(self)
        if self.cluster is None:
            del fields["targets"], fields["cluster"]
        if not self.adopt:
            del fields["adopt"]
        return fields


JobSpec = Annotated[
    ScriptSpec
    | NoopSpec
    | ActionSpec
    | TerraformSpec
    | HelmSpec
    | ManifestSpec
    | HealthSpec
    | ImageSpec
    | BuildSpec
    | SecretsSpec,
    Field(discriminator="kind"),
]
