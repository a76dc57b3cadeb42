"""The component types that this version can deploy: one entry per type.

An entry says how components of its type are defined, built and deployed, and how the results of
their jobs are read. Its class is its shape: what is planned has a plan, an approval and an apply,
what is copied has one job. To add a type, add an entry here and an executor to the runner.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from exclave.appconfig.model.kinds.components import Component, PlannedComponent
from exclave.appconfig.model.kinds.container_image import ContainerImage
from exclave.appconfig.model.kinds.helm_chart import HelmChart
from exclave.appconfig.model.kinds.kubernetes_manifest import KubernetesManifest
from exclave.appconfig.model.kinds.other_components import DockerBuild, Job
from exclave.appconfig.model.kinds.policies import Policy
from exclave.appconfig.model.kinds.sandbox import Sandbox
from exclave.appconfig.model.kinds.terraform_module import TerraformModule
from exclave.base.errors import InvalidInput
from exclave.control.job_specs.part_results import COPIED_RESULTS, PLANNED_RESULTS, PartResults
from exclave.control.job_specs.state_serials import find_state_serial
from exclave.domain.identity import OrgId
from exclave.domain.installs import DeployShape
from exclave.domain.intents import ApplyPart, PlanPart, ScanPart, SyncPart
from exclave.domain.jobs import JobKind
from exclave.jobspec.container_jobs import make_container_job_apply, make_container_job_plan
from exclave.jobspec.facts import ApplyFacts, ImageFacts, PlanFacts
from exclave.jobspec.helm import make_helm_apply, make_helm_plan
from exclave.jobspec.images import make_image_job
from exclave.jobspec.manifests import make_manifest_apply, make_manifest_plan
from exclave.jobspec.terraform import make_terraform_apply, make_terraform_plan
from exclave.storage.engine.database import Tx
from exclave.wire.model import Request

D = TypeVar("D", bound=Component | Sandbox)
P = TypeVar("P", bound=PlannedComponent | Sandbox)


def _is_always_built(_: object) -> bool:
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentType(Generic[D]):
    """How components of one type meet the platform."""

    SHAPE: ClassVar[DeployShape]
    definition: type[D]
    """The class of `appconfig` that their stored config is read as; it has the defaults."""
    artifact: str
    """The type of artifact that a build makes of their source; the runner checks it by this."""
    policy: str
    """The type of policies that see their plans, or their images when they are built."""
    kind: JobKind
    """The kind of their jobs, which decides about the executor."""
    results: PartResults
    """How the results of their jobs are read."""
    is_built: Callable[[D], bool] = _is_always_built
    """Tells whether a component has a source that is built."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedType(ComponentType[P]):
    """A type that is deployed by a plan, an approval and an apply."""

    SHAPE: ClassVar = DeployShape.PLANNED
    make_plan: Callable[[P, PlanFacts, PlanPart | ScanPart], Request]
    """Returns the job that plans a deploy or a teardown, or looks for drift."""
    make_apply: Callable[[P, ApplyFacts, ApplyPart], Request]
    """Returns the job that applies such a plan, once it is approved."""
    find_serial: Callable[[Tx, OrgId, str, str], int] = find_state_serial
    """Finds the version of the deployed state; an apply refuses a plan made for another one."""
    needs_cluster: bool = False
    """Whether their jobs work on a Kubernetes cluster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiedType(ComponentType[D]):
    """A type that is deployed by one job, which may be repeated."""

    SHAPE: ClassVar = DeployShape.COPIED
    make_sync: Callable[[D, ImageFacts, SyncPart], Request]
    """Returns the job that copies the component into the install, or removes it."""


SANDBOX_TYPES: Mapping[str, PlannedType[Any]] = {
    "terraform": PlannedType(
        definition=Sandbox,
        artifact="terraform_module",
        policy="sandbox",
        kind=JobKind.TERRAFORM,
        make_plan=make_terraform_plan,
        make_apply=make_terraform_apply,
        results=PLANNED_RESULTS,
    )
}
COMPONENT_TYPES: Mapping[str, ComponentType[Any]] = {
    TerraformModule.TYPE: PlannedType(
        definition=TerraformModule,
        artifact="terraform_module",
        policy=TerraformModule.TYPE,
        kind=JobKind.TERRAFORM,
        make_plan=make_terraform_plan,
        make_apply=make_terraform_apply,
        results=PLANNED_RESULTS,
    ),
    HelmChart.TYPE: PlannedType(
        definition=HelmChart,
        artifact="helm_chart",
        policy=HelmChart.TYPE,
        kind=JobKind.HELM,
        make_plan=make_helm_plan,
        make_apply=make_helm_apply,
        results=PLANNED_RESULTS,
        needs_cluster=True,
    ),
    KubernetesManifest.TYPE: PlannedType(
        definition=KubernetesManifest,
        artifact="kustomize",
        policy=KubernetesManifest.TYPE,
        kind=JobKind.MANIFEST,
        make_plan=make_manifest_plan,
        make_apply=make_manifest_apply,
        results=PLANNED_RESULTS,
        is_built=lambda definition: definition.kustomize is not None,
        needs_cluster=True,
    ),
    Job.TYPE: PlannedType(
        definition=Job,
        artifact="",
        policy=KubernetesManifest.TYPE,
        kind=JobKind.MANIFEST,
        make_plan=make_container_job_plan,
        make_apply=make_container_job_apply,
        results=PLANNED_RESULTS,
        is_built=lambda _: False,
        needs_cluster=True,
    ),
    ContainerImage.TYPE: CopiedType(
        definition=ContainerImage,
        artifact="image_copy",
        policy=ContainerImage.TYPE,
        kind=JobKind.IMAGE,
        make_sync=make_image_job,
        results=COPIED_RESULTS,
    ),
    DockerBuild.TYPE: CopiedType(
        definition=DockerBuild,
        artifact="image_build",
        policy=DockerBuild.TYPE,
        kind=JobKind.IMAGE,
        make_sync=make_image_job,
        results=COPIED_RESULTS,
    ),
}


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


def get_planned_type(definition: Component | Sandbox) -> PlannedType[Any]:
    """Return the type of a part that has plans."""
    type_ = get_type(definition)
    if not isinstance(type_, PlannedType):
        message = f"components of type `{definition.type}` are copied: they have no plan"
        raise InvalidInput(message)
    return type_


def get_copied_type(definition: Component) -> CopiedType[Any]:
    """Return the type of a component that is copied."""
    type_ = get_type(definition)
    if not isinstance(type_, CopiedType):
        message = f"components of type `{definition.type}` are planned: they are not copied"
        raise InvalidInput(message)
    return type_


def find_shape(type_: str) -> DeployShape:
    """Return the shape of a component type by its name."""
    return COMPONENT_TYPES[type_].SHAPE


def find_results(kind: JobKind) -> PartResults | None:
    """Return how results of a kind of jobs are read; None if such jobs deploy no parts."""
    types = (*SANDBOX_TYPES.values(), *COMPONENT_TYPES.values())
    return next((type_.results for type_ in types if type_.kind is kind), None)


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
