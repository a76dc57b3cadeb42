"""The component types that this version can deploy: one entry per type.

An entry says how components of its type are defined, built, planned, applied, checked for drift and
torn down. To add a type, add an entry here and an executor to the runner.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from exclave.appconfig.model.kinds.components import PlannedComponent
from exclave.appconfig.model.kinds.policies import Policy
from exclave.appconfig.model.kinds.sandbox import Sandbox
from exclave.appconfig.model.kinds.terraform_module import TerraformModule
from exclave.appconfig.stored.freezing import thaw
from exclave.base.errors import InvalidInput
from exclave.control.job_specs.part_facts import PartFacts
from exclave.control.job_specs.terraform import find_state_serial, make_terraform_job
from exclave.domain.identity import OrgId
from exclave.domain.tf_addresses import read_name
from exclave.flow.plans.intents import PartIntent
from exclave.storage.engine.database import Tx
from exclave.wire.model import Request
from exclave.wire.specs import PlanRef

D = TypeVar("D", bound=PlannedComponent | Sandbox)


@dataclass(frozen=True, slots=True)
class ComponentType(Generic[D]):
    """How components of one type meet the platform."""

    definition: type[D]
    """The class of `appconfig` that their stored config is read as; it has the defaults."""
    artifact: Literal["terraform_module"]
    """The type of artifact that a build makes of their source."""
    policy: str
    """The type of policies that see their plans."""
    make_job: Callable[[D, PartFacts, PartIntent, PlanRef | None], Request]
    """Returns the job of a plan, an apply, a drift scan or a teardown; the intent says which."""
    find_serial: Callable[[Tx, OrgId, str, str], int]
    """Finds the version of the deployed state; an apply refuses a plan made for another one."""
    read_outputs: Callable[[Mapping[str, Any]], dict[str, Any]]
    """Reads the outputs that an apply reports, which templates can use."""


def _read_terraform_outputs(reported: Mapping[str, Any]) -> dict[str, Any]:
    return {read_name(name): value for name, value in reported.items()}


_SANDBOXES: Mapping[str, ComponentType[Any]] = {
    "terraform": ComponentType(
        definition=Sandbox,
        artifact="terraform_module",
        policy="sandbox",
        make_job=make_terraform_job,
        find_serial=find_state_serial,
        read_outputs=_read_terraform_outputs,
    )
}
_COMPONENTS: Mapping[str, ComponentType[Any]] = {
    TerraformModule.TYPE: ComponentType(
        definition=TerraformModule,
        artifact="terraform_module",
        policy=TerraformModule.TYPE,
        make_job=make_terraform_job,
        find_serial=find_state_serial,
        read_outputs=_read_terraform_outputs,
    )
}


def find_type(component: str, value: Mapping[str, Any]) -> ComponentType[Any] | None:
    """Return the type of a stored component, or of the sandbox if `component` is empty."""
    if component:
        return _COMPONENTS.get(value.get("type", ""))
    return _SANDBOXES.get(thaw(Sandbox, value).type)


def get_type(component: str, value: Mapping[str, Any]) -> ComponentType[Any]:
    """Return the type of a stored component or sandbox; refuse one that cannot be deployed."""
    found = find_type(component, value)
    if found is None:
        raise _refuse([(component or "sandbox", value.get("type", ""))])
    return found


def read_definition(component: str, value: Mapping[str, Any]) -> PlannedComponent | Sandbox:
    """Return the typed definition of a stored component, or of the sandbox."""
    if not component:
        return thaw(Sandbox, value)
    definition: PlannedComponent = thaw(get_type(component, value).definition, value)
    return definition


def refuse_unsupported(components: Sequence[tuple[str, str]]) -> None:
    """Refuse to deploy components, given by name and type, of a type that has no entry."""
    unsupported = [(name, type_) for name, type_ in components if type_ not in _COMPONENTS]
    if unsupported:
        raise _refuse(unsupported)


def select_policies(
    policies: Sequence[Policy], type_: ComponentType[Any], component: str
) -> tuple[Policy, ...]:
    """Return the policies for the plans of a part.

    A plan that only removes things has to pass them as well.
    """
    return tuple(
        policy
        for policy in policies
        if policy.type == type_.policy
        and policy.engine == "opa"
        and (not component or "*" in policy.components or component in policy.components)
    )


def _refuse(unsupported: Sequence[tuple[str, str]]) -> InvalidInput:
    names = ", ".join(f"`{name}` ({type_})" for name, type_ in unsupported[:5])
    return InvalidInput(
        f"this version cannot deploy: {names}",
        hint=f"Components of these types can be deployed: {', '.join(sorted(_COMPONENTS))}.",
    )
