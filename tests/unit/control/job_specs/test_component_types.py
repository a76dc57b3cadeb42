"""The registry of component types, and the jobs that its entries make without a database."""

import pytest

from exclave.appconfig.model.kinds.policies import Policy
from exclave.base.errors import InvalidInput
from exclave.control.job_specs.component_types import (
    find_type,
    get_type,
    read_definition,
    refuse_unsupported,
    select_policies,
)
from exclave.control.job_specs.part_facts import PartFacts
from exclave.control.job_specs.terraform import make_terraform_job
from exclave.flow.plans.intents import ApplyPart, PlanPart, ScanPart
from exclave.wire.specs import Artifact, PlanRef, TerraformSpec

DIGEST = f"sha256:{'a' * 64}"
MODULE: dict[str, object] = {
    "type": "terraform_module",
    "name": "db",
    "vars": {"size": "{{x}}"},
    "var_file": [{"contents": "a = 1"}],
}


def render(text: str, where: str) -> str:
    return text.replace("{{x}}", f"<{where}>")


def make(part: str, value: dict[str, object], **more: object) -> TerraformSpec:
    intent = more.pop("intent", PlanPart(part))
    facts = PartFacts(Artifact(repository="apps/a", digest=DIGEST), render, more)  # type: ignore[arg-type]
    definition = read_definition(part.partition(":")[2], value)
    return make_terraform_job(definition, facts, intent)  # type: ignore[arg-type]


def test_a_job_is_made_of_a_definition_and_facts_alone() -> None:
    spec = make("component:db", MODULE, tf_vars="b = {{x}}")

    assert spec.operation == "plan"
    assert spec.workspace == "component:db"
    assert spec.vars == {"size": "<component:db: vars.size>"}
    assert spec.var_files == ["a = 1", "b = <component:db: tf_vars of the install>"]
    assert spec == make("component:db", MODULE, tf_vars="b = {{x}}")


def test_an_apply_names_its_plan_and_sees_no_policies() -> None:
    plan = PlanRef(execution_id=f"exe_{'a' * 26}", digest=DIGEST)
    policy = Policy(type="sandbox", name="p", contents="package nuon")
    facts = PartFacts(Artifact(repository="a", digest=DIGEST), render, {}, (policy,))
    definition = read_definition("", {})
    intent = ApplyPart("sandbox", "sandbox-plan", destroy=True)

    spec = make_terraform_job(definition, facts, intent, plan)  # type: ignore[arg-type]

    assert (spec.operation, spec.plan, spec.destroy, spec.policies) == ("apply", plan, True, [])


@pytest.mark.parametrize(
    ("part", "value", "seconds"),
    [
        ("component:db", MODULE, 3600.0),
        ("component:db", {**MODULE, "deploy_timeout": "20m"}, 1200.0),
        ("sandbox", {}, 3600.0),
    ],
)
def test_the_timeout_is_that_of_the_definition(
    part: str, value: dict[str, object], seconds: float
) -> None:
    assert make(part, value).timeout_s == seconds


def test_a_plan_waits_as_long_as_its_intent_says_and_a_scan_does_not() -> None:
    assert make("sandbox", {}, intent=PlanPart("sandbox", delay_s=20.0)).delay_s == 20.0
    assert make("sandbox", {}, intent=ScanPart("sandbox")).delay_s == 0.0


def test_types_without_an_entry_are_refused_with_one_message() -> None:
    refuse_unsupported([("db", "terraform_module")])
    with pytest.raises(InvalidInput, match=r"this version cannot deploy: `web` \(helm_chart\)"):
        refuse_unsupported([("db", "terraform_module"), ("web", "helm_chart")])
    with pytest.raises(InvalidInput, match=r"cannot deploy: `web` \(helm_chart\)"):
        get_type("web", {"type": "helm_chart"})
    with pytest.raises(InvalidInput, match=r"cannot deploy: `sandbox` \(pulumi\)"):
        get_type("", {"type": "pulumi"})


def test_a_part_sees_the_policies_of_its_type_that_name_it() -> None:
    def policy(name: str, type_: str, *components: str, engine: str = "opa") -> Policy:
        return Policy(
            type=type_, engine=engine, name=name, components=components, contents="package nuon"
        )

    policies = [
        policy("all", "terraform_module", "*"),
        policy("db", "terraform_module", "db"),
        policy("web", "terraform_module", "web"),
        policy("chart", "helm_chart", "*"),
        policy("other-engine", "terraform_module", "*", engine="kyverno"),
        policy("sandbox", "sandbox"),
    ]

    seen = select_policies(policies, get_type("db", MODULE), "db")
    of_sandbox = select_policies(policies, get_type("", {}), "")

    assert [each.name for each in seen] == ["all", "db"]
    assert [each.name for each in of_sandbox] == ["sandbox"]
    assert find_type("web", {"type": "helm_chart"}) is None
