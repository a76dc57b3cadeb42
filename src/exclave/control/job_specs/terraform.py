"""Planning a part, and applying exactly the plan that was approved."""

from typing import Any

from exclave.control.install_state.options import read_overrides
from exclave.control.install_state.reported_outputs import read_count
from exclave.control.job_specs.context import NotReady, Scope, read_timeout
from exclave.domain.identity import QueueId
from exclave.domain.jobs import Reason
from exclave.domain.lanes import SANDBOX
from exclave.flow.plans.drafts import component_lane
from exclave.flow.plans.intents import ApplyPart, PartIntent, PlanPart, ScanPart
from exclave.storage import configs, install_parts, tf_states, workflows
from exclave.wire.specs import PlanRef, RegoPolicy, TerraformSpec

_POLICY_TYPES = {"sandbox": "sandbox", "component": "terraform_module"}


def make_plan(scope: Scope, intent: PlanPart | ScanPart) -> TerraformSpec:
    """Return the job that plans a part."""
    delay_s = intent.delay_s if isinstance(intent, PlanPart) else None
    return TerraformSpec(
        operation="plan",
        policies=_find_policies(scope, intent.component),
        delay_s=delay_s or 0.0,
        **_make_common(scope, intent),
    )


def make_apply(scope: Scope, intent: ApplyPart) -> TerraformSpec:
    """Make the job that applies a plan; one that an apply has overtaken is planned again."""
    planned = next(step for step in scope.workflow.steps if step.name == intent.plan)
    job = scope.job_ids[planned.index]
    execution = install_parts.find_succeeded_execution(scope.tx, scope.org, job or "")
    if execution is None or not planned.digest:
        raise NotReady(Reason.PLAN_MISSING, f"there is no plan of `{intent.part}` to apply")
    _refuse_stale(scope, intent, planned.index)
    return TerraformSpec(
        operation="apply",
        plan=PlanRef(execution_id=execution, digest=planned.digest),
        **_make_common(scope, intent),
    )


def _refuse_stale(scope: Scope, intent: ApplyPart, planned: int) -> None:
    key = (scope.org, scope.workflow.id)
    outputs = workflows.load_outputs(scope.tx, key, [planned])[intent.plan]
    workspace = name_workspace(intent.component)
    newest = tf_states.find_newest(scope.tx, scope.org, QueueId(scope.install), workspace)
    serial = 0 if newest is None else newest.serial
    planned_at = read_count(outputs, "serial")
    if planned_at != serial:
        message = f"the plan was made for serial {planned_at}, the state is at {serial}"
        raise NotReady(Reason.PLAN_STALE, message)


def _make_common(scope: Scope, intent: PartIntent) -> dict[str, Any]:
    part, name = intent.part, intent.component
    section = "component" if name else "sandbox"
    value = scope.find_part(section, name)
    files = [
        scope.render(str(each["contents"]), f"{part}: var_file[{at}]")
        for at, each in enumerate(value.get("var_file", []))
    ]
    override = read_overrides(scope.row).get(name, {}).get("tf_vars")
    if override:
        files.append(scope.render(override, f"{part}: tf_vars of the install"))
    return {
        "destroy": intent.destroy,
        "workspace": name_workspace(name),
        "artifact": scope.find_artifact(part),
        "version": str(value.get("terraform_version", "")),
        "vars": scope.render_map(value.get("vars", {}), f"{part}: vars"),
        "var_files": files,
        "env": scope.render_map(value.get("env_vars", {}), f"{part}: env_vars"),
        "timeout_s": read_timeout(scope.render(str(value.get("deploy_timeout", "60m")), part)),
    }


def name_workspace(component: str) -> str:
    """Return the name of a part's Terraform state: that of the lane that guards it."""
    return component_lane(component) if component else SANDBOX


def _find_policies(scope: Scope, name: str) -> list[RegoPolicy]:
    """Find the rules for this part; a plan that only removes things has to pass them as well."""
    wanted = _POLICY_TYPES["component" if name else "sandbox"]
    found = []
    for row in configs.list_parts(scope.tx, scope.org, scope.config_id, "policy"):
        value = row.value
        about = value.get("components", [])
        fits = not name or "*" in about or name in about
        if value["type"] == wanted and value.get("engine", "") == "opa" and fits:
            title = str(value.get("name") or row.name)
            rego = scope.render(str(value["contents"]), f"policy {title}")
            found.append(RegoPolicy(name=title, rego=rego))
    return found
