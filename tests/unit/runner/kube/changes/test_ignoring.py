"""Scans leave out what controllers write and what rules name, and nothing else."""

import pytest

from exclave.base.json_values import Json, JsonObject
from exclave.runner.kube.api.objects import ObjectId
from exclave.runner.kube.changes.ignoring import IgnoreRules, RuleBroken, parse_rule_path
from exclave.wire.kubernetes import IgnoreRule

WEB = ObjectId("apps", "v1", "Deployment", "ns", "web-1")
HOOK = ObjectId("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration", "", "w")
REPLICAS = ("spec", "replicas")
SCALER: JsonObject = {
    "metadata": {"namespace": "ns"},
    "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "web-1"}},
}


@pytest.mark.parametrize(
    ("rule", "path", "ignored"),
    [
        (IgnoreRule(kind="Deployment", path="spec.replicas"), REPLICAS, True),
        (IgnoreRule(kind="StatefulSet", path="spec.replicas"), REPLICAS, False),
        (IgnoreRule(name="web-*"), ("data", "x"), True),
        (IgnoreRule(name="api-*"), ("data", "x"), False),
        (
            IgnoreRule(path="spec.containers[*].image"),
            ("spec", "containers", ("web",), "image"),
            True,
        ),
        (
            IgnoreRule(path='spec.containers["api"]'),
            ("spec", "containers", ("web",), "image"),
            False,
        ),
        (IgnoreRule(path="metadata.annotations"), ("metadata", "annotations", "a.b/c"), True),
        (IgnoreRule(path='metadata.annotations["a.b/c"]'), ("metadata", "annotations"), False),
    ],
)
def test_a_rule_matches_by_kind_name_and_path(
    rule: IgnoreRule, path: tuple[Json, ...], *, ignored: bool
) -> None:
    assert IgnoreRules([rule]).ignores(WEB, path) is ignored


def test_replicas_are_no_drift_where_an_autoscaler_or_the_scale_command_set_them() -> None:
    scaled: JsonObject = {"metadata": {"managedFields": [{"subresource": "scale"}]}}

    assert IgnoreRules([], [SCALER]).ignores(WEB, REPLICAS)
    assert IgnoreRules([]).ignores(WEB, REPLICAS, scaled)
    assert not IgnoreRules([]).ignores(WEB, REPLICAS, {"metadata": {}})


def test_certificates_that_controllers_put_into_webhooks_are_no_drift() -> None:
    assert IgnoreRules([]).ignores(HOOK, ("webhooks", "a", "clientConfig", "caBundle"))
    assert not IgnoreRules([]).ignores(WEB, ("spec", "caBundle"))


@pytest.mark.parametrize("text", ["spec..x", "[", "spec[x]", "a b"])
def test_a_path_that_cannot_be_read_is_an_error(text: str) -> None:
    with pytest.raises(RuleBroken, match="is not a path"):
        parse_rule_path(text)
