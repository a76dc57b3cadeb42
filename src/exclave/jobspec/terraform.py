"""The jobs of Terraform parts: a component of type `terraform_module`, or the sandbox."""

from collections.abc import Sequence

from exclave.appconfig.model.kinds.policies import Policy
from exclave.appconfig.model.kinds.sandbox import Sandbox
from exclave.appconfig.model.kinds.terraform_module import TerraformModule
from exclave.domain.intents import ApplyPart, PartIntent, PlanPart, ScanPart
from exclave.jobspec.facts import ApplyFacts, PartFacts, PlanFacts
from exclave.jobspec.texts import read_timeout, render_map, render_policies
from exclave.jobspec.workspaces import name_workspace
from exclave.wire.spec_fields import PlanRef
from exclave.wire.specs import TerraformSpec

Definition = TerraformModule | Sandbox


def make_terraform_plan(
    definition: Definition, facts: PlanFacts, intent: PlanPart | ScanPart
) -> TerraformSpec:
    """Return the job that plans a deploy or a teardown of a part, or looks for drift."""
    delay_s = intent.delay_s if isinstance(intent, PlanPart) else None
    return _make_job(definition, facts, intent, policies=facts.policies, delay_s=delay_s or 0.0)


def make_terraform_apply(
    definition: Definition, facts: ApplyFacts, intent: ApplyPart
) -> TerraformSpec:
    """Return the job that applies the plan that was approved."""
    return _make_job(definition, facts, intent, plan=facts.plan)


def _make_job(
    definition: Definition,
    facts: PartFacts,
    intent: PartIntent,
    *,
    plan: PlanRef | None = None,
    policies: Sequence[Policy] = (),
    delay_s: float = 0.0,
) -> TerraformSpec:
    part, render = intent.part, facts.render
    return TerraformSpec(
        operation="plan" if plan is None else "apply",
        plan=plan,
        destroy=intent.destroy,
        workspace=name_workspace(intent.component),
        artifact=facts.require_artifact(),
        version=definition.terraform_version,
        var_files=_render_var_files(definition, facts, part),
        vars=render_map(render, definition.vars, f"{part}: vars"),
        env=render_map(render, definition.env_vars, f"{part}: env_vars"),
        policies=render_policies(render, policies),
        delay_s=delay_s,
        timeout_s=read_timeout(render(definition.deploy_timeout, part)),
    )


def _render_var_files(definition: Definition, facts: PartFacts, part: str) -> list[str]:
    """Return the variable files in the order in which each wins over those before it."""
    texts = [
        facts.render(file.contents, f"{part}: var_file[{index}]")
        for index, file in enumerate(definition.var_file)
    ]
    if facts.override:
        texts.append(facts.render(facts.override, f"{part}: tf_vars of the install"))
    return texts
