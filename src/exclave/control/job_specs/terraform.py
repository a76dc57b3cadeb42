"""The jobs of Terraform parts: a component of type `terraform_module`, or the sandbox.

`make_terraform_job` is a pure function of the part's definition and of facts about the install.
"""

from collections.abc import Mapping, Sequence

from exclave.appconfig.model.kinds.policies import Policy
from exclave.appconfig.model.kinds.sandbox import Sandbox
from exclave.appconfig.model.kinds.terraform_module import TerraformModule
from exclave.control.job_specs.context import read_timeout
from exclave.control.job_specs.part_facts import PartFacts, Render
from exclave.domain.identity import OrgId, QueueId
from exclave.domain.lanes import SANDBOX
from exclave.flow.plans.drafts import component_lane
from exclave.flow.plans.intents import PartIntent, PlanPart
from exclave.storage import tf_states
from exclave.storage.engine.database import Tx
from exclave.wire.specs import PlanRef, RegoPolicy, TerraformSpec


def make_terraform_job(
    definition: TerraformModule | Sandbox,
    facts: PartFacts,
    intent: PartIntent,
    plan: PlanRef | None = None,
) -> TerraformSpec:
    """Return the job that plans a part, or applies the plan that was approved."""
    part, component, render = intent.part, intent.component, facts.render
    var_files = [
        render(file.contents, f"{part}: var_file[{index}]")
        for index, file in enumerate(definition.var_file)
    ]
    if override := facts.overrides.get("tf_vars"):
        var_files.append(render(override, f"{part}: tf_vars of the install"))
    delay_s = intent.delay_s if isinstance(intent, PlanPart) else None
    return TerraformSpec(
        operation="plan" if plan is None else "apply",
        plan=plan,
        destroy=intent.destroy,
        workspace=name_workspace(component),
        artifact=facts.artifact,
        version=definition.terraform_version,
        vars=_render_map(render, definition.vars, f"{part}: vars"),
        var_files=var_files,
        env=_render_map(render, definition.env_vars, f"{part}: env_vars"),
        policies=[] if plan is not None else _render_policies(render, facts.policies),
        delay_s=delay_s or 0.0,
        timeout_s=read_timeout(render(definition.deploy_timeout, part)),
    )


def name_workspace(component: str) -> str:
    """Return the name of a part's Terraform state: that of the lane that guards it."""
    return component_lane(component) if component else SANDBOX


def find_state_serial(tx: Tx, org: OrgId, install: str, component: str) -> int:
    """Return the serial of a part's newest state; 0 if there is none."""
    newest = tf_states.find_newest(tx, org, QueueId(install), name_workspace(component))
    return 0 if newest is None else newest.serial


def _render_policies(render: Render, policies: Sequence[Policy]) -> list[RegoPolicy]:
    return [
        RegoPolicy(name=policy.name, rego=render(policy.contents, f"policy {policy.name}"))
        for policy in policies
    ]


def _render_map(render: Render, texts: Mapping[str, str], where: str) -> dict[str, str]:
    return {name: render(text, f"{where}.{name}") for name, text in texts.items()}
