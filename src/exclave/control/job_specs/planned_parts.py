"""Gather the facts for jobs that plan a part, or apply exactly the plan that was approved."""

from typing import Any

from exclave.appconfig.model.kinds.components import Component, WatchedComponent
from exclave.appconfig.model.kinds.helm_chart import HelmChart
from exclave.appconfig.model.kinds.kubernetes_manifest import KubernetesManifest
from exclave.appconfig.model.kinds.policies import Policy
from exclave.appconfig.model.kinds.sandbox import Sandbox
from exclave.control.definitions import list_policies
from exclave.control.job_specs.applied_plans import list_applied_plans
from exclave.control.job_specs.cluster_access import find_cluster, list_images
from exclave.control.job_specs.cluster_policies import find_policies_serial, make_policies_job
from exclave.control.job_specs.component_types import (
    PlannedType,
    get_planned_type,
    select_policies,
)
from exclave.control.job_specs.context import Scope
from exclave.control.job_specs.part_results import PLANNED_RESULTS, PartResults
from exclave.domain.intents import (
    ApplyPart,
    CheckPart,
    PartIntent,
    PlanPart,
    ScanPart,
    WorkflowValues,
)
from exclave.domain.jobs import Reason
from exclave.domain.lanes import POLICIES
from exclave.jobspec.errors import NotReady
from exclave.jobspec.facts import ApplyFacts, PartFacts, PlanFacts
from exclave.jobspec.health import make_health_job
from exclave.storage import install_parts, steps
from exclave.wire.kubernetes import ClusterRef
from exclave.wire.model import Request
from exclave.wire.spec_fields import Artifact, PlanRef


def make_plan(scope: Scope, intent: PlanPart | ScanPart, values: WorkflowValues) -> Request:
    """Return the job that plans a part."""
    if intent.part == POLICIES:
        return make_policies_job(scope, intent, None)
    definition = _find_definition(scope, intent)
    type_ = get_planned_type(definition)
    facts = PlanFacts(
        artifact=_find_artifact(scope, type_, definition, intent),
        render=scope.render,
        override=_find_override(scope, definition),
        policies=_load_policies(scope, type_, intent.component),
        deployed=_find_deployed(scope, definition, intent),
        is_drift_scan=isinstance(intent, ScanPart) and values.is_drift_scan,
        cluster=_find_cluster(scope, type_, definition),
        images=list_images(scope) if type_.needs_cluster else (),
    )
    return type_.make_plan(definition, facts, intent)


def make_apply(scope: Scope, intent: ApplyPart) -> Request:
    """Return the job that applies a plan; refuse a plan that was made for an older state."""
    planned = next(step for step in scope.workflow.steps if step.name == intent.plan)
    job = scope.job_ids[planned.index]
    execution = install_parts.find_succeeded_execution(scope.tx, scope.org, job or "")
    if execution is None or not planned.digest:
        raise NotReady(Reason.PLAN_MISSING, f"there is no plan of `{intent.part}` to apply")
    plan = PlanRef(execution_id=execution, digest=planned.digest)
    if intent.part == POLICIES:
        serial = find_policies_serial(scope.tx, scope.org, scope.install)
        _refuse_stale(scope, PLANNED_RESULTS, intent, planned.index, serial)
        return make_policies_job(scope, intent, plan)
    definition = _find_definition(scope, intent)
    type_ = get_planned_type(definition)
    serial = type_.find_serial(scope.tx, scope.org, scope.install, intent.component)
    _refuse_stale(scope, type_.results, intent, planned.index, serial)
    facts = ApplyFacts(
        artifact=_find_artifact(scope, type_, definition, intent),
        render=scope.render,
        override=_find_override(scope, definition),
        plan=plan,
        cluster=_find_cluster(scope, type_, definition),
        images=list_images(scope) if type_.needs_cluster else (),
    )
    return type_.make_apply(definition, facts, intent)


def make_check(scope: Scope, intent: CheckPart) -> Request:
    """Return the job that looks whether a component is healthy."""
    definition = scope.find_definition(Component, intent.component)
    type_ = get_planned_type(definition)
    if not isinstance(definition, HelmChart | KubernetesManifest):
        raise NotReady(Reason.DISABLED, f"`{intent.component}` has no health checks")
    facts = PartFacts(
        artifact=None,
        render=scope.render,
        override="",
        cluster=_find_cluster(scope, type_, definition),
    )
    return make_health_job(definition, facts, intent)


def _find_deployed(
    scope: Scope, definition: Component | Sandbox, intent: PlanPart | ScanPart
) -> PlanRef | None:
    """Return the plan that a failed deploy goes back to, if the component asks for it."""
    if not isinstance(definition, WatchedComponent) or not definition.rollback_on_failure:
        return None
    parts = install_parts.list_parts(scope.tx, scope.org, scope.install)
    is_deployed = any(part.name == intent.part and part.config_id for part in parts)
    plans = list_applied_plans(scope.tx, scope.org, scope.install, intent.component)
    if not plans or not is_deployed:
        return None
    return PlanRef(execution_id=plans[0].execution, digest=plans[0].digest)


def _refuse_stale(
    scope: Scope, results: PartResults, intent: ApplyPart, plan: int, serial: int
) -> None:
    key = (scope.org, scope.workflow.id)
    outputs = steps.load_outputs(scope.tx, key, [plan])[intent.plan]
    planned_at = results.read_plan(outputs).serial
    if planned_at != serial:
        message = f"the plan was made for serial {planned_at}, the state is at {serial}"
        raise NotReady(Reason.PLAN_STALE, message)


def _find_definition(scope: Scope, intent: PartIntent) -> Component | Sandbox:
    if intent.component:
        return scope.find_definition(Component, intent.component)
    return scope.find_definition(Sandbox)


def _find_artifact(
    scope: Scope, type_: PlannedType[Any], definition: Component | Sandbox, intent: PartIntent
) -> Artifact | None:
    return scope.find_artifact(intent.part) if type_.is_built(definition) else None


def _find_cluster(
    scope: Scope, type_: PlannedType[Any], definition: Component | Sandbox
) -> ClusterRef | None:
    if not type_.needs_cluster or isinstance(definition, Sandbox):
        return None
    return find_cluster(scope, definition.kubernetes_context)


def _find_override(scope: Scope, definition: Component | Sandbox) -> str:
    if isinstance(definition, Sandbox):
        return ""
    return scope.row.overrides.get(definition.name, {}).get(definition.OVERRIDE, "")


def _load_policies(scope: Scope, type_: PlannedType[Any], component: str) -> tuple[Policy, ...]:
    policies = list_policies(scope.tx, scope.org, scope.config_id)
    return select_policies(policies, type_, component)
