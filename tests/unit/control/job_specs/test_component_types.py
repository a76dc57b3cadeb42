"""The registry of component types."""

import pytest

from exclave.appconfig.model.kinds.helm_chart import HelmChart
from exclave.appconfig.model.kinds.policies import Policy
from exclave.appconfig.model.kinds.sandbox import Sandbox
from exclave.appconfig.model.kinds.terraform_module import TerraformModule
from exclave.appconfig.model.sections import COMPONENT_TYPES as KNOWN_TYPES
from exclave.base.errors import InvalidInput
from exclave.control.install_state.reported_outputs import OutputsInvalid
from exclave.control.job_specs.component_types import (
    COMPONENT_TYPES,
    SANDBOX_TYPES,
    ComponentType,
    find_results,
    find_type,
    get_type,
    refuse_unsupported,
    select_policies,
)
from exclave.control.progress.job_results import RECORDERS
from exclave.domain.intents import ApplyPart, PlanPart, ScanPart
from exclave.domain.jobs import JobKind
from exclave.runner.builds.recipes import RECIPES
from exclave.wire.installs import ComponentOverride
from tests.unit.jobspec.jobspec_kit import apply_facts, plan_facts

MODULE = TerraformModule(type="terraform_module", name="db")
CHART = HelmChart(type="helm_chart", name="web")


@pytest.mark.parametrize(
    ("part", "type_"),
    [
        *(("sandbox", type_) for type_ in SANDBOX_TYPES.values()),
        *(("component:x", type_) for type_ in COMPONENT_TYPES.values()),
    ],
)
def test_the_jobs_of_an_entry_are_of_its_kind_and_a_runner_builds_its_artifact(
    part: str, type_: ComponentType[Sandbox | TerraformModule]
) -> None:
    definition = type_.definition()
    jobs = [
        type_.make_plan(definition, plan_facts(), PlanPart(part)),
        type_.make_plan(definition, plan_facts(), ScanPart(part)),
        type_.make_apply(definition, apply_facts(), ApplyPart(part, "plan")),
    ]

    assert {job.model_dump()["kind"] for job in jobs} == {type_.kind}
    assert type_.artifact in RECIPES


def test_every_entry_is_for_a_type_that_app_directories_have() -> None:
    assert {name: type_.definition for name, type_ in COMPONENT_TYPES.items()}.items() <= (
        KNOWN_TYPES.items()
    )


def test_every_kind_of_jobs_has_one_reader_of_its_results() -> None:
    of_parts = {kind for kind in JobKind if find_results(kind) is not None}

    assert of_parts | set(RECORDERS) == set(JobKind)
    assert not of_parts & set(RECORDERS)


def test_types_without_an_entry_are_refused_with_one_message() -> None:
    refuse_unsupported([("db", "terraform_module")])
    with pytest.raises(InvalidInput, match=r"this version cannot deploy: `web` \(helm_chart\)"):
        refuse_unsupported([("db", "terraform_module"), ("web", "helm_chart")])
    with pytest.raises(InvalidInput, match=r"cannot deploy: `web` \(helm_chart\)"):
        get_type(CHART)
    with pytest.raises(InvalidInput, match=r"cannot deploy: `sandbox` \(pulumi\)"):
        get_type(Sandbox(type="pulumi"))
    assert find_type(CHART) is None


def test_a_plan_and_outputs_that_no_terraform_job_reports_are_refused() -> None:
    results = get_type(MODULE).results

    plan = results.read_plan({"noop": True, "serial": 3})

    assert (plan.noop, plan.serial) == (True, 3)
    assert results.read_outputs({"outputs": {"url": "u"}}) == {"url": "u"}
    with pytest.raises(OutputsInvalid):
        results.read_plan({"serial": "many"})
    with pytest.raises(OutputsInvalid):
        results.read_outputs({"outputs": []})


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

    seen = select_policies(policies, get_type(MODULE), "db")
    of_sandbox = select_policies(policies, get_type(Sandbox()), "")

    assert [each.name for each in seen] == ["all", "db"]
    assert [each.name for each in of_sandbox] == ["sandbox"]


def test_every_override_of_an_install_is_for_one_component_type() -> None:
    named = [model.OVERRIDE for model in KNOWN_TYPES.values() if model.OVERRIDE]

    assert sorted(named) == sorted(ComponentOverride.model_fields)
