"""Facts about an install that a job is made from, beside the definition and the intent."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from exclave.appconfig.model.kinds.policies import Policy
from exclave.base.json_values import JsonObject
from exclave.domain.intents import WorkflowValues
from exclave.domain.jobs import Reason
from exclave.domain.stacks import Cloud
from exclave.jobspec.errors import NotReady
from exclave.wire.images import PinnedImage
from exclave.wire.kubernetes import ClusterRef
from exclave.wire.spec_fields import Artifact, PlanRef

Render = Callable[[str, str], str]
"""Renders a template with the install's state; the second text says where it is written."""
RenderCommand = Callable[[str, str], Sequence[str]]
"""Renders a command to its words, so that a value never adds one; as `Render` otherwise."""


@dataclass(frozen=True, slots=True)
class PartFacts:
    """What every job of a component, or of the sandbox, depends on."""

    artifact: Artifact | None
    """What was built from the part's source; None if it has none, such as a written manifest."""
    render: Render
    override: str
    """What the install adds to the values of this component; its class names the key."""
    cluster: ClusterRef | None = field(default=None, kw_only=True)
    """The cluster that the part goes to; None if its type needs none."""
    images: tuple[PinnedImage, ...] = field(default=(), kw_only=True)
    """The images that were copied into the install's registry."""

    def require_artifact(self) -> Artifact:
        """Return what was built."""
        if self.artifact is None:
            raise NotReady(Reason.NOT_BUILT, "the part has no source that could be built")
        return self.artifact

    def require_cluster(self) -> ClusterRef:
        """Return the cluster."""
        if self.cluster is None:
            raise NotReady(Reason.CLUSTER_UNREACHABLE, "the part names no cluster")
        return self.cluster


@dataclass(frozen=True, slots=True)
class PlanFacts(PartFacts):
    """What the job of a plan, or of a drift scan, depends on."""

    policies: tuple[Policy, ...] = ()
    """The policies that the plan has to pass; each has a name."""
    deployed: PlanRef | None = None
    """The plan that is deployed now, if it can be deployed again."""
    is_drift_scan: bool = False
    """Whether the plan tells how far the install is from what was deployed last."""


@dataclass(frozen=True, slots=True)
class ApplyFacts(PartFacts):
    """What the job of an apply depends on."""

    plan: PlanRef
    """The plan that was approved."""


@dataclass(frozen=True, slots=True)
class ImageFacts:
    """What the job that copies an image depends on."""

    artifact: Artifact
    """The image in the vendor's registry."""
    render: Render
    install_id: str
    target: Cloud
    sandbox: JsonObject
    """The outputs of the sandbox, one of which names the install's registry."""
    role: str
    """The name of the role that the runner logs in with; empty: the usual one."""


@dataclass(frozen=True, slots=True)
class ActionFacts:
    """What the job of an action depends on."""

    org_id: str
    app_id: str
    install_id: str
    workflow_id: str
    values: WorkflowValues
    """What the workflow was started with."""
    artifacts: Mapping[str, Artifact]
    """What was built from the sources of the action's steps, by step."""
    render: Render
    render_command: RenderCommand
    cluster: ClusterRef | None = None
    """The cluster that commands may work on, if it is known."""


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """What the sources of a config version depend on."""

    config_id: str
    archive_digest: str
    folders: Mapping[str, str]
    """The digests of the app directory's folders that are sources."""
