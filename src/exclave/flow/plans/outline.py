"""What a step graph is built from: the outline of app and install, and the request."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from exclave.domain.installs import DeployShape
from exclave.domain.intents import StoredPlan


@dataclass(frozen=True, slots=True)
class Component:
    """A component, what it needs, and whether this install has it."""

    name: str
    needs: tuple[str, ...] = ()
    enabled: bool = True
    deployed: bool = False
    auto_approve: bool = False
    shape: DeployShape = DeployShape.PLANNED
    rollback_to: StoredPlan | None = None
    """The plan whose content is deployed again, instead of what the app says now."""
    take_over: bool = False
    """Whether its release is taken over from another Helm."""
    adopt: bool = False
    """Whether it may have been deployed to another cluster."""


@dataclass(frozen=True, slots=True)
class Hook:
    """An action on a trigger; `component` is empty for triggers of the whole install."""

    action: str
    trigger: str
    component: str = ""
    index: int = 0


@dataclass(frozen=True, slots=True)
class Outline:
    """What the shape of a workflow depends on."""

    components: tuple[Component, ...] = ()
    """In deploy order."""
    hooks: tuple[Hook, ...] = ()
    has_sandbox: bool = True
    sandbox_deployed: bool = False
    sandbox_auto_approve: bool = False
    has_secrets: bool = False
    copies_secrets: bool = False
    """Whether secrets are copied into the cluster, or copies of an earlier config are there."""
    has_policies: bool = False
    """Whether the app has policies that are objects in the cluster."""
    policies_deployed: bool = False
    builds_pending: bool = False

    def hooks_on(self, trigger: str, component: str = "") -> tuple[Hook, ...]:
        """List the actions on a trigger, in their order."""
        hooks = [h for h in self.hooks if h.trigger == trigger and h.component in {"", component}]
        return tuple(sorted(hooks, key=lambda hook: (hook.index, hook.action)))

    def pick(self, names: Iterable[str]) -> tuple[Component, ...]:
        """List components by name, in deploy order."""
        wanted = frozenset(names)
        return tuple(component for component in self.components if component.name in wanted)

    def with_dependents(self, names: Iterable[str]) -> tuple[str, ...]:
        """List components and all that need them, directly or not, in deploy order."""
        closure = set(names)
        for component in self.components:
            if closure & set(component.needs):
                closure.add(component.name)
        return tuple(component.name for component in self.components if component.name in closure)


@dataclass(frozen=True, slots=True)
class RunbookStep:
    """One step of a runbook, resolved: what it does and to whom."""

    name: str
    type: str
    subject: str = ""
    dependents: bool = False
    plan_only: bool = False
    skip_components: bool = False


@dataclass(frozen=True, slots=True)
class Request:
    """What a workflow is asked to do, beside its type."""

    components: tuple[str, ...] = ()
    sandbox: bool = False
    """Whether the sandbox is included: changed inputs affect it, or it is scanned for drift."""
    dependents: bool = False
    plan_only: bool = False
    rollback_to: StoredPlan | None = None
    """Of a deploy of one component: what it goes back to."""
    take_over: bool = False
    """Of a deploy: take releases over from another Helm."""
    adopt: bool = False
    """Of a deploy of one component: it lives in another cluster now."""
    deployed_by: str = ""
    """Of a health check: the workflow that deployed what is looked at."""
    new_stack: bool = False
    """The customer's Stack has to report first: the app asks for more than before."""
    action: str = ""
    trigger: str = "manual"
    runbook: str = ""
    runbook_steps: tuple[RunbookStep, ...] = ()
    runbook_inputs: Mapping[str, str] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables for a run of an action; they win over the action's own."""
    role: str = ""
