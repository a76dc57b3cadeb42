"""The typed definitions that the stored parts of a config version are read as."""

from collections.abc import Mapping
from typing import Final, TypeVar

from exclave.appconfig.model.fields import Table
from exclave.appconfig.model.kinds.actions import Action
from exclave.appconfig.model.kinds.components import Component
from exclave.appconfig.model.kinds.inputs import Input, InputGroup
from exclave.appconfig.model.kinds.kubernetes_contexts import KubernetesContext
from exclave.appconfig.model.kinds.metadata import Metadata
from exclave.appconfig.model.kinds.operation_roles import RoleRule
from exclave.appconfig.model.kinds.permissions import BreakGlassRole, NamedPolicy, Role
from exclave.appconfig.model.kinds.policies import Policy
from exclave.appconfig.model.kinds.runbooks import Runbook
from exclave.appconfig.model.kinds.runner import Runner
from exclave.appconfig.model.kinds.sandbox import Sandbox
from exclave.appconfig.model.kinds.secrets import Secret
from exclave.appconfig.model.kinds.stack import Stack
from exclave.appconfig.model.sections import COMPONENT_TYPES
from exclave.appconfig.stored.freezing import FrozenElsewhere, thaw
from exclave.base.json_values import JsonObject

T = TypeVar("T", bound=Table)

_SECTIONS: Final[Mapping[type[Table], str]] = {
    Action: "action",
    BreakGlassRole: "break_glass",
    Component: "component",
    Input: "input",
    InputGroup: "input_group",
    KubernetesContext: "kubernetes_context",
    Metadata: "metadata",
    NamedPolicy: "named_policy",
    Policy: "policy",
    Role: "permission",
    RoleRule: "role_rule",
    Runbook: "runbook",
    Runner: "runner",
    Sandbox: "sandbox",
    Secret: "secret",
    Stack: "stack",
}


def name_section(model: type[Table]) -> str:
    """Return the section whose parts are read as a class."""
    return _SECTIONS[model]


def read_definition(model: type[T], frozen: JsonObject) -> T:
    """Return the definition of a stored part; that of a component has the class of its type."""
    if model is not Component:
        return thaw(model, frozen)
    type_ = str(frozen.get("type", ""))
    known = COMPONENT_TYPES.get(type_)
    if known is None:
        raise FrozenElsewhere(f"`{type_}` is not a type of components", type=type_)
    definition = thaw(known, frozen)
    assert isinstance(definition, model)  # noqa: S101 - the classes of types are components
    return definition
