"""An app as typed, frozen values: what a directory says, once it is read."""

from dataclasses import dataclass
from typing import TypeVar

from exclave.appconfig.diagnostics import Place
from exclave.appconfig.model.fields import Table
from exclave.appconfig.model.kinds.actions import Action
from exclave.appconfig.model.kinds.branches import Branch
from exclave.appconfig.model.kinds.components import Component
from exclave.appconfig.model.kinds.inputs import Input, InputGroup
from exclave.appconfig.model.kinds.installs import Install, InstallsPointer
from exclave.appconfig.model.kinds.kubernetes_contexts import KubernetesContext
from exclave.appconfig.model.kinds.metadata import Metadata
from exclave.appconfig.model.kinds.operation_roles import RoleRule
from exclave.appconfig.model.kinds.permissions import NamedPolicy, Role
from exclave.appconfig.model.kinds.policies import Policy
from exclave.appconfig.model.kinds.runbooks import Runbook
from exclave.appconfig.model.kinds.runner import Runner
from exclave.appconfig.model.kinds.sandbox import Sandbox
from exclave.appconfig.model.kinds.secrets import Secret
from exclave.appconfig.model.kinds.stack import Stack
from exclave.appconfig.model.kinds.triggers import EventRule
from exclave.appconfig.reading.decode import Text

T = TypeVar("T", bound=Table)


@dataclass(frozen=True, eq=False)
class Entry:
    """One thing of the app, where it is written, and all texts in it."""

    section: str
    value: Table
    place: Place
    texts: tuple[Text, ...] = ()

    @property
    def name(self) -> str:
        """Its name; empty for things that need none."""
        return str(getattr(self.value, "name", ""))

    @property
    def title(self) -> str:
        """What a person calls it."""
        kind = _TITLES.get(self.section, self.section.replace("_", " ").removesuffix("s"))
        kind = "input group" if isinstance(self.value, InputGroup) else kind
        return f"{kind} `{self.name}`" if self.name and self.section != "stack" else kind


_TITLES = {
    "policies": "policy", "named_policies": "named policy", "branches": "branch",
    "permissions": "role", "break_glass": "break-glass role", "triggers": "rule",
    "operation_roles": "operation roles", "installs_source": "installs.toml",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class App:
    """An app directory."""

    name: str
    entries: tuple[Entry, ...]

    def list(self, model: type[T], section: str = "") -> tuple[T, ...]:
        """List the things of a type."""
        return tuple(
            entry.value
            for entry in self.entries
            if isinstance(entry.value, model) and section in {"", entry.section}
        )

    def entries_of(self, model: type[Table], section: str = "") -> tuple[Entry, ...]:
        """List the things of a type, with their places."""
        return tuple(
            entry
            for entry in self.entries
            if isinstance(entry.value, model) and section in {"", entry.section}
        )

    def _first(self, model: type[T]) -> T | None:
        return next(iter(self.list(model)), None)

    @property
    def metadata(self) -> Metadata | None:
        """`metadata.toml`."""
        return self._first(Metadata)

    @property
    def sandbox(self) -> Sandbox | None:
        """`sandbox.toml`."""
        return self._first(Sandbox)

    @property
    def runner(self) -> Runner | None:
        """`runner.toml`."""
        return self._first(Runner)

    @property
    def stack(self) -> Stack | None:
        """`stack.toml`."""
        return self._first(Stack)

    @property
    def cloud(self) -> str:
        """The cloud of the whole app; empty if unknown."""
        return self.runner.cloud if self.runner else ""

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The inputs, in the order in which they are shown."""
        return self.list(Input)

    @property
    def input_groups(self) -> tuple[InputGroup, ...]:
        """The groups of inputs, in the order in which they are shown."""
        return self.list(InputGroup)

    @property
    def secrets(self) -> tuple[Secret, ...]:
        """The secrets."""
        return self.list(Secret)

    @property
    def roles(self) -> tuple[Role, ...]:
        """The roles of permissions."""
        return self.list(Role, "permissions")

    @property
    def break_glass_roles(self) -> tuple[Role, ...]:
        """The roles for emergencies."""
        return self.list(Role, "break_glass")

    @property
    def named_policies(self) -> tuple[NamedPolicy, ...]:
        """The policies that roles share."""
        return self.list(NamedPolicy)

    @property
    def policies(self) -> tuple[Policy, ...]:
        """The rules that plans, manifests and images must pass."""
        return self.list(Policy)

    @property
    def operation_roles(self) -> tuple[RoleRule, ...]:
        """The cells of the role matrix."""
        return self.list(RoleRule)

    @property
    def kubernetes_contexts(self) -> tuple[KubernetesContext, ...]:
        """The clusters besides that of the sandbox."""
        return self.list(KubernetesContext)

    @property
    def components(self) -> tuple[Component, ...]:
        """The components, in the order of their files."""
        return self.list(Component)

    @property
    def actions(self) -> tuple[Action, ...]:
        """The actions."""
        return self.list(Action)

    @property
    def runbooks(self) -> tuple[Runbook, ...]:
        """The runbooks."""
        return self.list(Runbook)

    @property
    def branches(self) -> tuple[Branch, ...]:
        """The branches."""
        return self.list(Branch)

    @property
    def triggers(self) -> tuple[EventRule, ...]:
        """The rules for events from outside."""
        return self.list(EventRule)

    @property
    def installs(self) -> tuple[Install, ...]:
        """The install configs."""
        return self.list(Install)

    @property
    def installs_source(self) -> InstallsPointer | None:
        """`installs.toml`."""
        return self._first(InstallsPointer)
