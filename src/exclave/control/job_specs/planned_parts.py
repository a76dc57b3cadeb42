"""Gather the facts for jobs that plan a part, or apply exactly the plan that was approved."""

from typing import Any

from exclave.appconfig.model.fields import evolve
from exclave.appconfig.model.kinds.components import Component
from exclave.appconfig.model.kinds.policies import Policy
from exclave.appconfig.model.kinds.sandbox import Sandbox
from exclave.control.definitions import list_definitions
from exclave.control.job_specs.component_types import ComponentType, get_type, select_policies
from exclave.control.job_specs.context import Scope
from exclave.domain.intents import ApplyPart, PartIntent, PlanPart, ScanPart
from exclave.domain.jobs import Reason
from exclave.jobspec.errors import NotReady
from exclave.jobspec.facts import ApplyFacts, PlanFacts
from exclave.storage import install_parts, steps
from exclave.wire.model import Request
from exclave.wire.specs import PlanRef


def make_plan(scope: Scope, intent: PlanPart | ScanPart) -> Request:
    """Return the job that plans a part."""
    definition = _find_definition(scope, intent)
    type_ = get_type(definition)
    facts = PlanFacts(
        artifact=scope.find_artifact(intent.part),
        render=scope.render,
        override=_find_override(scope, definition),
        policies=_load_policies(scope, type_, intent.component),
    )
    return type_.make_plan(definition, facts, intent)


def make_apply(scope: Scope, intent: ApplyPart) -> Request:
    """Return the job that applies a plan; refuse a plan that was made for an older state."""
    planned = next(step for step in scope.workflow.steps if step.name == intent.plan)
    job = scope.job_ids[planned.index]
    execution = install_parts.find_succeeded_execution(scope.tx, scope.org, job or "")
    if execution is None or not planned.digest:
        raise NotReady(Reason.PLAN_MISSING, f"there is no plan of `{intent.part}` to apply")
    definition = _find_definition(scope, intent)
    type_ = get_type(definition)
    _refuse_stale(scope, type_, intent, planned.index)
    facts = ApplyFacts(
        artifact=scope.find_artifact(intent.part),
        render=scope.render,
        override=_find_override(scope, definition),
        plan=PlanRef(execution_id=execution, digest=planned.digest),
    )
    return type_.make_apply(definition, facts, intent)


def _refuse_stale(scope: Scope, type_: ComponentType[Any], intent: ApplyPart, plan: int) -> None:
    key = (scope.org, scope.workflow.id)
    outputs = steps.load_outputs(scope.tx, key, [plan])[intent.plan]
    planned_at = type_.results.read_plan(outputs).serial
    serial = type_.find_serial(scope.tx, scope.org, scope.install, intent.component)
    if planned_at != serial:
        message = f"the plan was made for serial {planned_at}, the state is at {serial}"
        raise NotReady(Reason.PLAN_STALE, message)


def _find_definition(scope: Scope, intent: PartIntent) -> Component | Sandbox:
    if intent.component:
        return scope.find_definition(Component, intent.component)
    return scope.find_definition(Sandbox)


def _find_override(scope: Scope, definition: Component | Sandbox) -> str:
    if isinstance(definition, Sandbox):
        return ""
    return scope.row.overrides.get(definition.name, {}).get(definition.OVERRIDE, "")


def _load_policies(scope: Scope, type_: ComponentType[Any], component: str) -> tuple[Policy, ...]:
    policies = list_definitions(scope.tx, scope.org, scope.config_id, Policy)
    named = [evolve(policy, name=policy.name or name) for name, policy in policies.items()]
    return select_policies(named, type_, component)
