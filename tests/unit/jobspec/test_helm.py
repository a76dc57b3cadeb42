"""The jobs of charts, made of a definition, facts and an intent alone."""

from dataclasses import replace
from typing import Any

import pytest

from exclave.appconfig.model.kinds.components import Ignore, Teardown
from exclave.appconfig.model.kinds.helm_chart import HelmChart, ValuesFile
from exclave.appconfig.model.kinds.policies import Policy
from exclave.domain.intents import ApplyPart, PlanPart, ScanPart, StoredPlan
from exclave.jobspec.errors import NotReady
from exclave.jobspec.facts import ApplyFacts, PlanFacts
from exclave.jobspec.helm import make_helm_apply, make_helm_plan
from exclave.wire.images import PinnedImage
from exclave.wire.kubernetes import IgnoreRule, KubeconfigCluster, TeardownRules, WaitRules
from tests.unit.jobspec.jobspec_kit import ARTIFACT, DIGEST, PLAN, apply_facts, plan_facts

CLUSTER = KubeconfigCluster()
IMAGE = PinnedImage(repository="reg.example/web", tag="x1", digest=DIGEST)
CHART = HelmChart(
    type="helm_chart",
    name="web",
    chart_name="shop-web",
    namespace="shop",
    values={"image.tag": "{{x}}"},
    values_file=(ValuesFile(contents="a: first"), ValuesFile(contents="a: {{x}}")),
)
INTENT = PlanPart("component:web")


def facts(override: str = "") -> PlanFacts:
    return replace(plan_facts(override), cluster=CLUSTER, images=(IMAGE,))


def apply() -> ApplyFacts:
    return replace(apply_facts(), cluster=CLUSTER)


def test_a_plan_names_the_release_its_cluster_and_its_images() -> None:
    spec = make_helm_plan(CHART, facts(), INTENT)

    assert (spec.operation, spec.workspace, spec.release) == ("plan", "component:web", "shop-web")
    assert (spec.cluster, spec.namespace, spec.artifact) == (CLUSTER, "shop", ARTIFACT)
    assert (spec.images, spec.timeout_s, spec.destroy) == ([IMAGE], 1800.0, False)


def test_the_first_file_of_an_app_is_the_last_one_of_a_job_because_there_the_last_wins() -> None:
    spec = make_helm_plan(CHART, facts("a: {{x}}"), INTENT)

    assert spec.values == ["a: <component:web: values_file[1]>", "a: first"]
    assert spec.sets == {"image.tag": "<component:web: values.image.tag>"}
    assert spec.overrides == "a: <component:web: helm_values of the install>"


def test_secrets_stay_placeholders() -> None:
    placeholder = "((exclave:secret:db_password))"
    chart = replace_chart(values={"password": placeholder})

    assert make_helm_plan(chart, facts(), INTENT).sets == {"password": placeholder}


@pytest.mark.parametrize(
    ("given", "intent"),
    [
        (facts("a: 1"), PlanPart("component:web", destroy=True)),
        (replace(facts("a: 1"), is_drift_scan=True), ScanPart("component:web")),
    ],
)
def test_a_teardown_or_drift_scan_needs_no_values_so_they_cannot_break_it(
    given: PlanFacts, intent: PlanPart | ScanPart
) -> None:
    spec = make_helm_plan(CHART, given, intent)

    assert (spec.values, spec.sets, spec.overrides) == ([], {}, "")
    assert (spec.destroy, spec.scan) == (intent.destroy, given.is_drift_scan)


def test_a_rollback_plans_what_was_deployed_then() -> None:
    then = StoredPlan(PLAN.execution_id, PLAN.digest, "cfg_1")

    spec = make_helm_plan(CHART, facts("a: 1"), PlanPart("component:web", rollback_to=then))

    assert (spec.rollback_to, spec.values, spec.overrides) == (PLAN, [], "")


def test_a_release_is_taken_over_only_when_somebody_asked_for_it() -> None:
    assert not make_helm_plan(CHART, facts(), INTENT).take_over_release
    asked = PlanPart("component:web", take_over=True)
    assert make_helm_plan(CHART, facts(), asked).take_over_release


def test_a_plan_alone_is_made_of_what_the_app_says_now() -> None:
    spec = make_helm_plan(CHART, facts(), ScanPart("component:web"))

    assert not spec.scan
    assert len(spec.values) == 2


def test_an_apply_has_the_approved_plan_instead_of_values() -> None:
    spec = make_helm_apply(CHART, apply(), ApplyPart("component:web", "web.plan"))

    assert (spec.operation, spec.plan) == ("apply", PLAN)
    assert (spec.values, spec.sets, spec.policies) == ([], {}, [])


def test_a_plan_has_to_pass_the_policies_and_may_have_to_wait() -> None:
    policy = Policy(type="helm_chart", name="p", contents="package {{x}}")
    intent = PlanPart("component:web", delay_s=20.0)

    spec = make_helm_plan(CHART, replace(facts(), policies=(policy,)), intent)

    assert [(each.name, each.rego) for each in spec.policies] == [("p", "package <policy p>")]
    assert spec.delay_s == 20.0


@pytest.mark.parametrize(
    ("driver", "wanted"),
    [("", "auto"), ("secret", "secret"), ("configmap", "configmap"), ("nuon", "auto")],
)
def test_the_driver_is_the_one_of_the_app_or_found_by_the_runner(driver: str, wanted: str) -> None:
    assert make_helm_plan(replace_chart(storage_driver=driver), facts(), INTENT).driver == wanted


@pytest.mark.parametrize(
    ("keys", "wanted"),
    [
        ({}, "create"),
        ({"crds": "upgrade"}, "upgrade"),
        ({"crds": "skip"}, "skip"),
        ({"skip_crds": True}, "skip"),
        ({"skip_crds": True, "crds": "upgrade"}, "skip"),
    ],
)
def test_crds_are_made_once_unless_the_app_says_otherwise(
    keys: dict[str, Any], wanted: str
) -> None:
    assert make_helm_plan(replace_chart(**keys), facts(), INTENT).crds == wanted


def test_rules_of_the_component_are_in_every_job() -> None:
    chart = replace_chart(
        ignore=(Ignore(kind="Deployment", path="spec.replicas"),),
        teardown=Teardown(volumes=True),
        require_no_downtime=True,
    )

    plan = make_helm_plan(chart, facts(), INTENT)
    applied = make_helm_apply(chart, apply(), ApplyPart("component:web", "web.plan"))

    for spec in (plan, applied):
        assert spec.ignore == [IgnoreRule(kind="Deployment", path="spec.replicas")]
        assert spec.teardown == TeardownRules(volumes=True)
        assert spec.wait == WaitRules(no_downtime=True)


def test_values_may_lie_in_a_file_that_is_named() -> None:
    chart = replace_chart(values_file=(ValuesFile(path="a: 1"), ValuesFile(source="a: 2")))

    assert make_helm_plan(chart, facts(), INTENT).values == ["a: 2", "a: 1"]


def test_an_id_of_an_install_is_a_namespace_with_a_hyphen() -> None:
    chart = replace_chart(namespace="ins_0abc", chart_name="web-ins_0abc")

    spec = make_helm_plan(chart, facts(), INTENT)

    assert (spec.namespace, spec.release) == ("ins-0abc", "web-ins-0abc")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"chart_name": "r" * 54}, "Helm allows 53"),
        ({"chart_name": ""}, "is not a name that Kubernetes allows"),
        ({"namespace": "Shop"}, "is not a name that Kubernetes allows"),
        ({"storage_driver": "sql"}, "no such driver"),
        ({"deploy_timeout": "soon"}, "is not a duration"),
    ],
)
def test_texts_that_no_cluster_would_take_are_refused_with_their_key(
    changed: dict[str, str], message: str
) -> None:
    with pytest.raises(NotReady, match=message):
        make_helm_plan(replace_chart(**changed), facts(), INTENT)


def test_a_chart_goes_nowhere_without_a_cluster() -> None:
    with pytest.raises(NotReady, match="names no cluster"):
        make_helm_plan(CHART, plan_facts(), INTENT)


def replace_chart(**changed: object) -> HelmChart:
    return HelmChart(**{**vars(CHART), **changed})
