"""Jobs that plan a part, and apply exactly the plan that was approved."""

from typing import Any

from exclave.appconfig.model.kinds.policies import Policy
from exclave.appconfig.stored.freezing import thaw
from exclave.base.json_values import Json
from exclave.control.install_state.reported_outputs import read_count
from exclave.control.job_specs.component_types import ComponentType, get_type, select_policies
from exclave.control.job_specs.context import NotReady, Scope
from exclave.control.job_specs.part_facts import PartFacts
from exclave.domain.jobs import Reason
from exclave.flow.plans.intents import ApplyPart, PartIntent, PlanPart, ScanPart
from exclave.storage import configs, install_parts, steps
from exclave.wire.model import Request
from exclave.wire.specs import PlanRef


def make_plan(scope: Scope, intent: PlanPart | ScanPart) -> Request:
    """Return the job that plans a part."""
    return _make_job(scope, intent, None)


def make_apply(scope: Scope, intent: ApplyPart) -> Request:
    """Return the job that applies a plan; refuse a plan that was made for an older state."""
    planned = next(step for step in scope.workflow.steps if step.name == intent.plan)
    job = scope.job_ids[planned.index]
    execution = install_parts.find_succeeded_execution(scope.tx, scope.org, job or "")
    if execution is None or not planned.digest:
        raise NotReady(Reason.PLAN_MISSING, f"there is no plan of `{intent.part}` to apply")
    _refuse_stale(scope, intent, planned.index)
    return _make_job(scope, intent, PlanRef(execution_id=execution, digest=planned.digest))


def _make_job(scope: Scope, intent: PartIntent, plan: PlanRef | None) -> Request:
    value = _find_value(scope, intent)
    type_ = get_type(intent.component, value)
    facts = PartFacts(
        artifact=scope.find_artifact(intent.part),
        render=scope.render,
        overrides=scope.row.overrides.get(intent.component, {}),
        policies=() if plan is not None else _load_policies(scope, type_, intent.component),
    )
    return type_.make_job(thaw(type_.definition, value), facts, intent, plan)


def _refuse_stale(scope: Scope, intent: ApplyPart, planned: int) -> None:
    key = (scope.org, scope.workflow.id)
    outputs = steps.load_outputs(scope.tx, key, [planned])[intent.plan]
    type_ = get_type(intent.component, _find_value(scope, intent))
    serial = type_.find_serial(scope.tx, scope.org, scope.install, intent.component)
    planned_at = read_count(outputs, "serial")
    if planned_at != serial:
        message = f"the plan was made for serial {planned_at}, the state is at {serial}"
        raise NotReady(Reason.PLAN_STALE, message)


def _find_value(scope: Scope, intent: PartIntent) -> dict[str, Json]:
    section = "component" if intent.component else "sandbox"
    return dict(scope.find_part(section, intent.component))


def _load_policies(scope: Scope, type_: ComponentType[Any], component: str) -> tuple[Policy, ...]:
    rows = configs.list_parts(scope.tx, scope.org, scope.config_id, "policy")
    policies = [
        thaw(Policy, {**row.value, "name": row.value.get("name") or row.name}) for row in rows
    ]
    return select_policies(policies, type_, component)
