"""Jobs on Kubernetes clusters: which cluster, where access comes from, what is deployed there."""

from typing import Annotated, Final, Literal, Self

from pydantic import (
    Field,
    SerializerFunctionWrapHandler,
    StringConstraints,
    model_serializer,
    model_validator,
)

from exclave.base import job_limits
from exclave.wire.images import PinnedImage
from exclave.wire.model import Name, Request
from exclave.wire.roles import JobRole
from exclave.wire.spec_fields import (
    Argument,
    Artifact,
    PlanRef,
    RegoPolicy,
    TimeoutS,
    Workspace,
)

Endpoint = Annotated[
    str, StringConstraints(pattern=r"^https://[^\s/?#@]+(/[^\s?#]*)?$", max_length=1000)
]
"""The address of an API server; always TLS."""
CertificateData = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9+/=\s]*$", max_length=256 << 10)
]
"""The certificate authority of an API server: PEM in base64, as in a kubeconfig."""
RoleName = Annotated[str, StringConstraints(max_length=200, pattern=r"^[^\x00]*$")]
"""A role by the name that the app gives it; the runner finds whose it is in the Stack's outputs."""


class KubeconfigCluster(Request):
    """A kubeconfig that the customer named when they ran the Stack."""

    type: Literal["kubeconfig"] = "kubeconfig"
    name: Name = "default"


class InCluster(Request):
    """The cluster that the runner itself runs in, by the account of its pod."""

    type: Literal["in_cluster"] = "in_cluster"


class EksCluster(Request):
    """A cluster of Amazon EKS; tokens are presigned by the runner."""

    type: Literal["eks"] = "eks"
    name: Annotated[str, StringConstraints(pattern=r"^[0-9A-Za-z][A-Za-z0-9_-]{0,99}$")]
    region: Annotated[str, StringConstraints(pattern=r"^[a-z]{2}(-[a-z]+)+-\d+$")]
    endpoint: Endpoint
    ca: CertificateData
    role: RoleName = ""


class GkeCluster(Request):
    """A cluster of Google GKE; tokens are those of a service account."""

    type: Literal["gke"] = "gke"
    endpoint: Endpoint
    ca: CertificateData
    role: RoleName = ""


class AksCluster(Request):
    """A cluster of Azure AKS; tokens are those of a managed identity."""

    type: Literal["aks"] = "aks"
    endpoint: Endpoint
    ca: CertificateData
    server_id: Annotated[str, StringConstraints(pattern=r"^[0-9a-f-]{36}$")] = (
        "6dae42f8-4368-4678-94ff-3960e28e3630"
    )
    """The application that tokens are for; the same one for every AKS cluster."""
    role: RoleName = ""


class InlineCluster(Request):
    """A kubeconfig that is an output of a component: a placeholder, filled in by the runner."""

    type: Literal["inline"] = "inline"
    kubeconfig: Annotated[str, StringConstraints(max_length=job_limits.VALUE)]


ClusterRef = Annotated[
    KubeconfigCluster | InCluster | EksCluster | GkeCluster | AksCluster | InlineCluster,
    Field(discriminator="type"),
]
"""A cluster. Nothing in it is secret: what is, is a placeholder that the runner fills in."""

MAX_MANIFEST = 1 << 20
"""Maximum length of a manifest or of a file of values: they are parts of a signed envelope."""
Namespace = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")]
LONGEST_RELEASE = 53
ReleaseName = Annotated[
    str,
    StringConstraints(pattern=r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$", max_length=LONGEST_RELEASE),
]
"""The name of a Helm release; Helm refuses longer ones."""
Operation = Literal["plan", "apply"]
Driver = Literal["secret", "configmap", "auto"]
"""Where Helm keeps the release; `auto`: where its records are, else in Secrets."""
Crds = Literal["create", "upgrade", "skip"]
"""What happens to the CRDs of the chart's folder `crds/`."""
Yaml = Annotated[str, StringConstraints(max_length=MAX_MANIFEST, pattern=r"^[^\x00]*$")]


COPY_LOG: Final = "exclave.dev/copy-log"
"""An annotation of a Job, with `true`: what it prints is copied into the log of the deploy."""


class IgnoreRule(Request):
    """A change that drift scans do not report; an empty field matches everything."""

    kind: Annotated[str, StringConstraints(max_length=200)] = ""
    name: Annotated[str, StringConstraints(max_length=300)] = ""
    """A glob."""
    path: Annotated[str, StringConstraints(max_length=1000)] = ""
    """A field: `spec.template.metadata.annotations["x"]`, `spec.containers[*].image`."""


CheckName = Annotated[str, StringConstraints(min_length=1, max_length=200)]
"""The name of a probe, or one of the checks that need none: `readiness`, `restarts`."""


class HealthProbe(Request):
    """A check of the app's own: a request, a connection, or a command in one of its pods."""

    name: CheckName
    type: Literal["http", "tcp", "exec"]
    url: Annotated[str, StringConstraints(max_length=2000, pattern=r"^[^\x00\s]*$")] = ""
    """What is asked (`http`), or host and port (`tcp`)."""
    command: Annotated[list[Argument], Field(max_length=100)] = []


class HealthRules(Request):
    """What makes a part healthy after its rollout."""

    window_s: Annotated[float, Field(ge=0, le=3600)]
    """How long it has to stay healthy."""
    block: bool = False
    """Whether the apply itself watches it, and fails."""
    required: Annotated[list[CheckName], Field(max_length=50)] = []
    """The checks that decide; none: all of them."""
    probes: Annotated[list[HealthProbe], Field(max_length=20)] = []


class WaitRules(Request):
    """What is demanded of a rollout, beside that it becomes ready before the job's timeout."""

    no_downtime: bool = False
    """Fail if a Service of the part had no ready endpoint at any moment."""
    health: HealthRules | None = None
    going_back_s: Annotated[float, Field(ge=0, le=86_400)] = 0.0
    """How much of the job's time is kept for going back after a failed rollout."""

    @property
    def kept_s(self) -> float:
        """How much of a job's time is for what comes after the rollout."""
        watched = self.health.window_s if self.health is not None and self.health.block else 0.0
        return watched + self.going_back_s

    @model_serializer(mode="wrap")
    def _leave_out_unused(self, dump: SerializerFunctionWrapHandler) -> dict[str, object]:
        """Leave out what older runners do not know, unless it is used."""
        fields: dict[str, object] = dump(self)
        if self.health is None:
            del fields["health"]
        if not self.going_back_s:
            del fields["going_back_s"]
        return fields


class TeardownRules(Request):
    """What a teardown removes beside the objects that were applied."""

    volumes: bool = False
    """Claims that StatefulSets of the part made."""
    namespace: bool = False
    """The namespace, if the part made it and nothing else is in it."""


class ClusterJob(Request):
    """What jobs that deploy objects to a cluster have in common.

    A plan compares what is wanted with the cluster and uploads what an apply will use, sealed; an
    apply does exactly that. Placeholders are filled in by the runner. Outputs of a plan: `digest`,
    `noop`, `serial`, `lineage`, `summary`, `policies`; of an apply: `outputs`, those of the part.
    """

    operation: Operation
    destroy: bool = False
    scan: bool = False
    """Compare what was deployed last, not what the artifact would give now: a drift scan."""
    workspace: Workspace
    cluster: ClusterRef
    namespace: Namespace
    images: Annotated[list[PinnedImage], Field(max_length=200)] = []
    """Images of the install; containers that use one by its tag get its digest as well."""
    ignore: Annotated[list[IgnoreRule], Field(max_length=100)] = []
    policies: Annotated[list[RegoPolicy], Field(max_length=100)] = []
    plan: PlanRef | None = None
    """The plan to apply; only with `apply`."""
    rollback_to: PlanRef | None = None
    """An earlier plan whose content is planned instead of the artifact; only with `plan`."""
    adopt: bool = False
    """Whether to go on although the part was deployed to another cluster; only with `plan`."""
    fall_back_to: PlanRef | None = None
    """The plan that is deployed now, which a failed rollout goes back to; only with `plan`."""
    wait: WaitRules = WaitRules()
    teardown: TeardownRules = TeardownRules()
    delay_s: Annotated[float, Field(ge=0, le=3600)] = 0.0
    """How long to wait before another try."""
    role: JobRole = None
    timeout_s: TimeoutS = 1800.0

    @model_serializer(mode="wrap")
    def _leave_out_unused(self, dump: SerializerFunctionWrapHandler) -> dict[str, object]:
        """Leave out what older runners do not know, unless it is used."""
        fields: dict[str, object] = dump(self)
        if self.fall_back_to is None:
            del fields["fall_back_to"]
        if not self.adopt:
            del fields["adopt"]
        return fields

    @property
    def takes_any_cluster(self) -> bool:
        """Whether the state may be of another cluster: a person, or the approved plan, says so."""
        return self.adopt or self.operation == "apply"

    @property
    def is_fresh(self) -> bool:
        """Whether a plan is made of what the app says now, not of what was deployed before."""
        reused = self.destroy or self.scan or self.rollback_to is not None
        return self.operation == "plan" and not reused

    @model_validator(mode="after")
    def _has_its_plans(self) -> Self:
        if (self.plan is not None) != (self.operation == "apply"):
            message = "`plan` belongs to the operation `apply`, and only to it"
            raise ValueError(message)
        if self.operation == "apply" and (self.rollback_to is not None or self.scan):
            message = "`rollback_to` and `scan` belong to the operation `plan`"
            raise ValueError(message)
        if self.destroy and (self.rollback_to is not None or self.scan):
            message = "a teardown is neither a rollback nor a scan"
            raise ValueError(message)
        return self


class ManifestSpec(ClusterJob):
    """Plan or apply Kubernetes objects: written out, or built by kustomize.

    A plan of what was deployed before (a teardown, a drift scan, a rollback) has neither.
    """

    kind: Literal["manifest"] = "manifest"
    manifest: Yaml | None = None
    artifact: Artifact | None = None

    @model_validator(mode="after")
    def _has_one_source(self) -> Self:
        given = sum(source is not None for source in (self.manifest, self.artifact))
        if given != (1 if self.is_fresh else 0):
            message = (
                "a new plan has exactly one of `manifest` and `artifact`, other jobs have none"
            )
            raise ValueError(message)
        return self


class HelmSpec(ClusterJob):
    """Plan or apply a release of a chart."""

    kind: Literal["helm"] = "helm"
    artifact: Artifact
    release: ReleaseName
    driver: Driver = "auto"
    values: Annotated[list[Yaml], Field(max_length=50)] = []
    """Files of values: the last wins."""
    sets: Annotated[dict[str, str], Field(max_length=500)] = {}
    """Values in the language of `helm --set`; they win over files, except for `overrides`."""
    overrides: Yaml = ""
    """Values of the install, which win over everything."""
    take_ownership: bool = False
    take_over_release: bool = False
    """Go on although somebody else's Helm seems to be at work; written into the plan."""
    crds: Crds = "create"


class HealthSpec(Request):
    """Check the health of a part that was deployed one window ago, without changing anything.

    Output: `health` with `state` (`healthy` or `degraded`) and `reason`.
    """

    kind: Literal["health"] = "health"
    workspace: Workspace
    cluster: ClusterRef
    namespace: Namespace
    rules: HealthRules
    delay_s: Annotated[float, Field(ge=0, le=3600)] = 0.0
    """How long to wait before another try."""
    role: JobRole = None
    timeout_s: TimeoutS = 300.0
