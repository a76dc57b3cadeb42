"""The component types that this version can deploy: one entry per type.

An entry says how components of its type are defined, built, planned, applied, checked for drift and
torn down, and how the results of their jobs are read. To add a type, add an entry here and an
executor to the runner.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from exclave.appconfig.model.kinds.components import Component, PlannedComponent
from exclave.appconfig.model.kinds.policies import Policy
from exclave.appconfig.model.kinds.sandbox import Sandbox
from exclave.appconfig.model.kinds.terraform_module import TerraformModule
from exclave.base.errors import InvalidInput
from exclave.control.job_specs.part_results import PartResults
from exclave.control.job_specs.terraform import TERRAFORM_RESULTS, find_state_serial
from exclave.domain.identity import OrgId
from exclave.domain.intents import ApplyPart, PlanPart, ScanPart
from exclave.domain.jobs import JobKind
from exclave.jobspec.facts import ApplyFacts, PlanFacts
from exclave.jobspec.terraform import make_terraform_apply, make_terraform_plan
from exclave.storage.engine.database import Tx
from exclave.wire.model import Request

D = TypeVar("D", bound=PlannedComponent | Sandbox)


@dataclass(frozen=True, slots=True)
class ComponentType(Generic[D]):
    """How components of one type meet the platform."""

    definition: type[D]
    """The class of `appconfig` that their stored config is read as; it has the defaults."""
    artifact: str
    """The type of artifact that a build makes of their source; the runner checks it by this."""
    policy: str
    """The type of policies that see their plans."""
    kind: JobKind
    """The kind of their jobs, which decides about the executor."""
    make_plan: Callable[[D, PlanFacts, PlanPart | ScanPart], Request]
    """Returns the job that plans a deploy or a teardown, or looks for drift."""
    make_apply: Callable[[D, ApplyFacts, ApplyPart], Request]
    """Returns the job that applies such a plan, once it is approved."""
    find_serial: Callable[[Tx, OrgId, str, str], int]
    """Finds the version of the deployed state; an apply refuses a plan made for another one."""
    results: PartResults
    """How the results of their jobs are read."""


SANDBOX_TYPES: Mapping[str, ComponentType[Any]] = {
    "terraform": ComponentType(
        definition=Sandbox,
        artifact="terraform_module",
        policy="sandbox",
        kind=JobKind.TERRAFORM,
        make_plan=make_terraform_plan,
        make_apply=make_terraform_apply,
        find_serial=find_state_serial,
        results=TERRAFORM_RESULTS,
    )
}
COMPONENT_TYPES: Mapping[str, ComponentType[Any]] = {
    TerraformModule.TYPE: ComponentType(
        definition=TerraformModule,
        artifact="terraform_module",
        policy=TerraformModule.TYPE,
        kind=JobKind.TERRAFORM,
        make_plan=make_terraform_plan,
        make_apply=make_terraform_apply,
        find_serial=find_state_serial,
        results=TERRAFORM_RESULTS,
    )
}

_RESULTS: Mapping[JobKind, PartResults] = dict.fromkeys(
    (JobKind.HELM, JobKind.MANIFEST, JobKind.IMAGE), TERRAFORM_RESULTS
)
"""Kinds that report a plan and outputs as Terraform jobs do."""


def find_type(definition: Component | Sandbox) -> ComponentType[Any] | None:
    """Return the type of a component, or of the sandbox; None if it cannot be deployed."""
    types = SANDBOX_TYPES if isinstance(definition, Sandbox) else COMPONENT_TYPES
    return types.get(definition.type)


def get_type(definition: Component | Sandbox) -> ComponentType[Any]:
    """Return the type of a component, or of the sandbox; refuse one that cannot be deployed."""
    type_ = find_type(definition)
    if type_ is None:
        name = "sandbox" if isinstance(definition, Sandbox) else definition.name
        raise _refuse([(name, definition.type)])
    return type_


def find_results(kind: JobKind) -> PartResults | None:
    """Return how results of a kind of jobs are read; None if such jobs deploy no parts."""
    types = (*SANDBOX_TYPES.values(), *COMPONENT_TYPES.values())
    named = next((type_.results for type_ in types if type_.kind is kind), None)
    return named or _RESULTS.get(kind)


def refuse_unsupported(components: Iterable[tuple[str, str]]) -> None:
    """Refuse to deploy components, given by name and type, of a type that has no entry."""
    unsupported = [(name, type_) for name, type_ in components if type_ not in COMPONENT_TYPES]
    if unsupported:
        raise _refuse(unsupported)


def select_policies(
    policies: Iterable[Policy], type_: ComponentType[Any], component: str
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
        hint=f"Components of these types can be deployed: {', '.join(sorted(COMPONENT_TYPES))}.",
    )
