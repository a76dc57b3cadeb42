"""The jobs of manifests, made of a definition, facts and an intent alone."""

from dataclasses import replace

import pytest

from exclave.appconfig.model.kinds.kubernetes_manifest import KubernetesManifest, Kustomize
from exclave.domain.intents import ApplyPart, PlanPart, ScanPart
from exclave.jobspec.errors import NotReady
from exclave.jobspec.manifests import make_manifest_apply, make_manifest_plan
from exclave.wire.kubernetes import KubeconfigCluster
from tests.unit.jobspec.jobspec_kit import ARTIFACT, PLAN, apply_facts, plan_facts

WRITTEN = KubernetesManifest(
    type="kubernetes_manifest", name="web", manifest="kind: {{x}}", namespace="shop"
)
OVERLAY = KubernetesManifest(
    type="kubernetes_manifest", name="web", kustomize=Kustomize(path="prod"), namespace="shop"
)
PLANNED = replace(plan_facts(), cluster=KubeconfigCluster())


def test_a_written_manifest_is_rendered_and_needs_no_artifact() -> None:
    spec = make_manifest_plan(WRITTEN, replace(PLANNED, artifact=None), PlanPart("component:web"))

    assert (spec.manifest, spec.artifact) == ("kind: <component:web: manifest>", None)
    assert (spec.namespace, spec.workspace, spec.timeout_s) == ("shop", "component:web", 900.0)


def test_an_overlay_is_what_was_built_of_it() -> None:
    spec = make_manifest_plan(OVERLAY, PLANNED, PlanPart("component:web"))

    assert (spec.manifest, spec.artifact) == (None, ARTIFACT)


def test_an_overlay_that_was_not_built_is_refused() -> None:
    with pytest.raises(NotReady, match="no source"):
        make_manifest_plan(OVERLAY, replace(PLANNED, artifact=None), PlanPart("component:web"))


def test_what_was_deployed_before_needs_no_text_and_no_artifact() -> None:
    applied = replace(apply_facts(), cluster=KubeconfigCluster())
    teardown = make_manifest_plan(WRITTEN, PLANNED, PlanPart("component:web", destroy=True))
    scan = make_manifest_plan(
        OVERLAY, replace(PLANNED, is_drift_scan=True), ScanPart("component:web")
    )
    apply = make_manifest_apply(WRITTEN, applied, ApplyPart("component:web", "web.plan"))

    assert {spec.manifest for spec in (teardown, scan, apply)} == {None}
    assert {spec.artifact for spec in (teardown, scan, apply)} == {None}
    assert (teardown.destroy, scan.scan, apply.plan) == (True, True, PLAN)
