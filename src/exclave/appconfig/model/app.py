"""An app as typed, frozen values."""

from dataclasses import dataclass
from typing import TypeVar

from exclave.appconfig.diagnostics.positions import KeyPath
from exclave.appconfig.diagnostics.report import Place
from exclave.appconfig.diagnostics.sources import WHOLE, Source
from exclave.appconfig.model.fields import Field, Table
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

T = TypeVar("T", bound=Table)


@dataclass(frozen=True, slots=True)
class Text:
    """A text of the app: its location, and the field that describes it."""

    at: KeyPath
    """The key path in its table, without the name of its owner."""
    content: str
    field: Field
    place: Place
    file: Source | None = None
    """The file that it came from, if it is not inline in the TOML."""
    remote: bool = False

    @property
    def is_rendered(self) -> bool:
        """Whether it may be a template: a `template_url` may, the file that it names may not."""
        return self.field.templated and (self.file is None or self.field.key != "template_url")

    @property
    def start(self) -> Place:
        """The location of its start: in the TOML, or in the file that the TOML names."""
        return self.place if self.file is None else Place(self.file, (), WHOLE)


@dataclass(frozen=True, eq=False)
class Entry:
    """One part of the app, its location, and all texts in it."""

    section: str
    value: Table
    place: Place
    texts: tuple[Text, ...] = ()

    @property
    def name(self) -> str:
        """The name; empty for parts without one."""
        return str(getattr(self.value, "name", ""))

    @property
    def title(self) -> str:
        """The name for messages, such as "component `x`"."""
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
    """An app: all parts that its directory defines."""

    name: str
    entries: tuple[Entry, ...]

    def list(self, model: type[T], section: str = "") -> tuple[T, ...]:
        """Return the parts of a type."""
        return tuple(
            entry.value
            for entry in self.entries
            if isinstance(entry.value, model) and section in {"", entry.section}
        )

    def entries_of(self, model: type[Table], section: str = "") -> tuple[Entry, ...]:
        """Return the entries of a type."""
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
        """The inputs, in display order."""
        return self.list(Input)

    @property
    def input_groups(self) -> tuple[InputGroup, ...]:
        """The groups of inputs, in display order."""
        return self.list(InputGroup)

    @property
    def secrets(self) -> tuple[Secret, ...]:
        """The secrets."""
        return self.list(Secret)

    @property
    def roles(self) -> tuple[Role, ...]:
        """The roles of `permissions`."""
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
        """The rules for external events."""
        return self.list(EventRule)

    @property
    def installs(self) -> tuple[Install, ...]:
        """The install configs."""
        return self.list(Install)

    @property
    def installs_source(self) -> InstallsPointer | None:
        """`installs.toml`."""
        return self._first(InstallsPointer)
