"""The registry of component types."""

from dataclasses import replace
from typing import Any

import pytest

from exclave.appconfig.model.kinds.container_image import ContainerImage
from exclave.appconfig.model.kinds.other_components import Pulumi
from exclave.appconfig.model.kinds.policies import Policy
from exclave.appconfig.model.kinds.sandbox import Sandbox
from exclave.appconfig.model.kinds.terraform_module import TerraformModule
from exclave.appconfig.model.sections import COMPONENT_TYPES as KNOWN_TYPES
from exclave.base.errors import InvalidInput
from exclave.control.install_state.reported_outputs import OutputsInvalid
from exclave.control.job_specs.component_types import (
    COMPONENT_TYPES,
    SANDBOX_TYPES,
    PlannedType,
    find_results,
    find_shape,
    find_type,
    get_copied_type,
    get_planned_type,
    get_type,
    refuse_unsupported,
    select_policies,
)
from exclave.control.progress.job_results import RECORDERS
from exclave.domain.intents import ApplyPart, PlanPart, ScanPart
from exclave.domain.jobs import JobKind
from exclave.runner.builds.recipes import RECIPES
from exclave.wire.installs import ComponentOverride
from exclave.wire.kubernetes import KubeconfigCluster
from tests.unit.jobspec.jobspec_kit import apply_facts, plan_facts

MODULE = TerraformModule(type="terraform_module", name="db")
PROGRAM = Pulumi(type="pulumi", name="web")
IMAGE = ContainerImage(type="container_image", name="web")
CLUSTER = KubeconfigCluster()


@pytest.mark.parametrize(
    ("part", "type_"),
    [
        *(("sandbox", type_) for type_ in SANDBOX_TYPES.values()),
        *(
            ("component:x", type_)
            for type_ in COMPONENT_TYPES.values()
            if isinstance(type_, PlannedType)
        ),
    ],
)
def test_the_jobs_of_a_planned_type_are_of_its_kind(part: str, type_: PlannedType[Any]) -> None:
    named = {"chart_name": "web", "namespace": "shop"}
    definition = type_.definition(
        **{key: text for key, text in named.items() if key in type_.definition.FIELDS}
    )
    plan = replace(plan_facts(), cluster=CLUSTER)
    jobs = [
        type_.make_plan(definition, plan, PlanPart(part)),
        type_.make_plan(definition, plan, ScanPart(part)),
        type_.make_apply(definition, replace(apply_facts(), cluster=CLUSTER), ApplyPart(part, "p")),
    ]

    assert {job.model_dump()["kind"] for job in jobs} == {type_.kind}


def test_a_runner_builds_the_artifacts_of_every_type_that_is_built() -> None:
    types = (*SANDBOX_TYPES.values(), *COMPONENT_TYPES.values())

    assert {type_.artifact for type_ in types if type_.artifact} <= RECIPES.keys()


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
    with pytest.raises(InvalidInput, match=r"this version cannot deploy: `web` \(pulumi\)"):
        refuse_unsupported([("db", "terraform_module"), ("web", "pulumi")])
    with pytest.raises(InvalidInput, match=r"cannot deploy: `web` \(pulumi\)"):
        get_type(PROGRAM)
    with pytest.raises(InvalidInput, match=r"cannot deploy: `sandbox` \(pulumi\)"):
        get_type(Sandbox(type="pulumi"))
    assert find_type(PROGRAM) is None


def test_a_plan_and_outputs_that_no_terraform_job_reports_are_refused() -> None:
    results = get_type(MODULE).results

    plan = results.read_plan({"noop": True, "serial": 3})

    assert (plan.noop, plan.serial) == (True, 3)
    assert results.read_outputs({"outputs": {"url": "u"}}) == {"url": "u"}
    with pytest.raises(OutputsInvalid):
        results.read_plan({"serial": "many"})
    with pytest.raises(OutputsInvalid):
        results.read_outputs({"outputs": []})


def test_what_a_copy_reports_is_the_image_that_templates_read() -> None:
    results = get_copied_type(IMAGE).results

    assert results.read_outputs({"image": {"tag": "x1"}}) == {"image": {"tag": "x1"}}
    with pytest.raises(OutputsInvalid):
        results.read_outputs({"image": "x1"})
    with pytest.raises(OutputsInvalid, match="no plan"):
        results.read_plan({"noop": True})


def test_what_is_copied_has_no_plan_and_what_is_planned_is_not_copied() -> None:
    with pytest.raises(InvalidInput, match="no plan"):
        get_planned_type(IMAGE)
    with pytest.raises(InvalidInput, match="not copied"):
        get_copied_type(MODULE)
    assert (find_shape("container_image"), find_shape("helm_chart")) == ("copied", "planned")


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
