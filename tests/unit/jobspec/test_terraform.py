"""The jobs of Terraform parts, made of a definition, facts and an intent alone."""

from dataclasses import replace

import pytest

from exclave.appconfig.model.kinds.policies import Policy
from exclave.appconfig.model.kinds.sandbox import Sandbox
from exclave.appconfig.model.kinds.shared import VarFile
from exclave.appconfig.model.kinds.terraform_module import TerraformModule
from exclave.domain.intents import ApplyPart, PlanPart, ScanPart
from exclave.jobspec.errors import NotReady
from exclave.jobspec.terraform import Definition, make_terraform_apply, make_terraform_plan
from tests.unit.jobspec.jobspec_kit import PLAN, apply_facts, plan_facts

MODULE = TerraformModule(
    type="terraform_module",
    name="db",
    vars={"size": "{{x}}"},
    var_file=(VarFile(contents="a = 1"),),
)
POLICY = Policy(type="terraform_module", name="p", contents="package {{x}}")


def test_a_plan_has_the_rendered_texts_of_its_definition_and_of_the_install() -> None:
    spec = make_terraform_plan(MODULE, plan_facts("b = {{x}}"), PlanPart("component:db"))

    assert (spec.operation, spec.workspace) == ("plan", "component:db")
    assert spec.vars == {"size": "<component:db: vars.size>"}
    assert spec.var_files == ["a = 1", "b = <component:db: tf_vars of the install>"]


def test_the_same_definition_and_facts_make_the_same_job() -> None:
    facts = replace(plan_facts("b = {{x}}"), policies=(POLICY,))
    intent = PlanPart("component:db", destroy=True, delay_s=5.0)

    first = make_terraform_plan(MODULE, facts, intent)
    second = make_terraform_plan(MODULE, facts, intent)

    assert first.model_dump_json() == second.model_dump_json()


def test_a_plan_has_to_pass_policies_and_an_apply_names_its_plan() -> None:
    facts = replace(plan_facts(), policies=(POLICY,))

    plan = make_terraform_plan(MODULE, facts, PlanPart("component:db"))
    apply = make_terraform_apply(MODULE, apply_facts(), ApplyPart("component:db", "db.plan"))

    assert [(each.name, each.rego) for each in plan.policies] == [("p", "package <policy p>")]
    assert (plan.plan, apply.plan) == (None, PLAN)
    assert (apply.operation, apply.policies) == ("apply", [])


def test_a_teardown_destroys_and_a_scan_never_does() -> None:
    intent = ApplyPart("sandbox", "sandbox-plan", destroy=True)

    assert make_terraform_apply(Sandbox(), apply_facts(), intent).destroy
    assert not make_terraform_plan(Sandbox(), plan_facts(), ScanPart("sandbox")).destroy


@pytest.mark.parametrize(
    ("part", "definition", "seconds"),
    [
        ("component:db", MODULE, 3600.0),
        ("component:db", TerraformModule(name="db", deploy_timeout="20m"), 1200.0),
        ("sandbox", Sandbox(), 3600.0),
    ],
)
def test_the_timeout_is_that_of_the_definition(
    part: str, definition: Definition, seconds: float
) -> None:
    assert make_terraform_plan(definition, plan_facts(), PlanPart(part)).timeout_s == seconds


def test_a_timeout_that_is_no_duration_makes_no_job() -> None:
    module = TerraformModule(name="db", deploy_timeout="soon")

    with pytest.raises(NotReady, match="`soon` is not a duration"):
        make_terraform_plan(module, plan_facts(), PlanPart("component:db"))


def test_a_plan_waits_as_long_as_its_intent_says_and_a_scan_does_not() -> None:
    plan = make_terraform_plan(Sandbox(), plan_facts(), PlanPart("sandbox", delay_s=20.0))
    scan = make_terraform_plan(Sandbox(), plan_facts(), ScanPart("sandbox"))

    assert (plan.delay_s, scan.delay_s) == (20.0, 0.0)
