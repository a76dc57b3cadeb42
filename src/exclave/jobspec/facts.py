"""Facts about an install that a job is made from, beside the definition and the intent."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from exclave.appconfig.model.kinds.policies import Policy
from exclave.domain.intents import WorkflowValues
from exclave.wire.specs import Artifact, PlanRef

Render = Callable[[str, str], str]
"""Renders a template with the install's state; the second text says where it is written."""
RenderCommand = Callable[[str, str], Sequence[str]]
"""Renders a command to its words, so that a value never adds one; as `Render` otherwise."""


@dataclass(frozen=True, slots=True)
class PartFacts:
    """What every job of a component, or of the sandbox, depends on."""

    artifact: Artifact
    """What was built from the part's source."""
    render: Render
    override: str
    """What the install adds to the values of this component; its class names the key."""


@dataclass(frozen=True, slots=True)
class PlanFacts(PartFacts):
    """What the job of a plan, or of a drift scan, depends on."""

    policies: tuple[Policy, ...] = ()
    """The policies that the plan has to pass; each has a name."""


@dataclass(frozen=True, slots=True)
class ApplyFacts(PartFacts):
    """What the job of an apply depends on."""

    plan: PlanRef
    """The plan that was approved."""


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


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """What the sources of a config version depend on."""

    config_id: str
    archive_digest: str
    folders: Mapping[str, str]
    """The digests of the app directory's folders that are sources."""
