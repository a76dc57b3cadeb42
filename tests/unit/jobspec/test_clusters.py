"""Which cluster a job works on, by the outputs of the app's own infrastructure."""

from typing import Any

import pytest

from exclave.base.json_values import JsonObject
from exclave.domain.stacks import Cloud
from exclave.jobspec.clusters import make_cluster
from exclave.jobspec.errors import NotReady
from exclave.wire.kubernetes import (
    AksCluster,
    ClusterRef,
    EksCluster,
    GkeCluster,
    InlineCluster,
    KubeconfigCluster,
)

CA = "Y2E="
ENDPOINT = "https://k8s.example"
CLUSTER = {"name": "prod", "endpoint": ENDPOINT, "certificate_authority_data": CA}
HIDDEN = "((exclave:output:sandbox:cluster))"


def find(outputs: JsonObject, target: Cloud, context: str = "") -> ClusterRef:
    return make_cluster(outputs, owner="the sandbox", context=context, target=target, role="deploy")


def test_on_aws_it_is_eks_in_the_region_of_its_arn() -> None:
    arn = "arn:aws:eks:eu-west-1:123456789012:cluster/prod"
    by_location = find({"cluster": {**CLUSTER, "location": "us-east-1"}}, Cloud.AWS)

    assert find({"cluster": {**CLUSTER, "arn": arn}}, Cloud.AWS) == EksCluster(
        name="prod", region="eu-west-1", endpoint=ENDPOINT, ca=CA, role="deploy"
    )
    assert isinstance(by_location, EksCluster)
    assert by_location.region == "us-east-1"


def test_on_gcp_and_azure_it_is_their_own() -> None:
    bare = {**CLUSTER, "endpoint": "10.0.0.1"}

    assert find({"cluster": bare}, Cloud.GCP) == GkeCluster(
        endpoint="https://10.0.0.1", ca=CA, role="deploy"
    )
    assert find({"cluster": CLUSTER}, Cloud.AZURE) == AksCluster(
        endpoint=ENDPOINT, ca=CA, role="deploy"
    )


@pytest.mark.parametrize("target", list(Cloud))
@pytest.mark.parametrize(
    "outputs",
    [{"cluster": HIDDEN}, {"cluster": {"kube_config": HIDDEN}}, {"kube_config": HIDDEN}],
)
def test_a_sensitive_kubeconfig_is_named_and_filled_in_by_the_runner(
    outputs: dict[str, Any], target: Cloud
) -> None:
    assert find(outputs, target) == InlineCluster(kubeconfig=HIDDEN)


def test_a_kubeconfig_that_is_not_hidden_never_gets_into_a_job() -> None:
    outputs = {"cluster": {"kube_config": "apiVersion: v1\ntoken: abc"}}

    assert find(outputs, Cloud.LOCAL) == KubeconfigCluster(name="default")


def test_on_a_machine_of_the_customer_the_stack_names_it() -> None:
    assert find({}, Cloud.LOCAL) == KubeconfigCluster(name="default")
    assert find({"cluster": CLUSTER}, Cloud.LOCAL, "edge") == KubeconfigCluster(name="edge")


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        ({}, "the sandbox has no output `cluster` and the Stack names no kubeconfig"),
        ({"cluster": "prod"}, "has no output `cluster`"),
        ({"cluster": {"name": "prod"}}, "has no `endpoint`"),
        ({"cluster": {**CLUSTER}}, "has no `region`"),
    ],
)
def test_what_is_missing_is_named(outputs: dict[str, Any], message: str) -> None:
    with pytest.raises(NotReady, match=message) as caught:
        find(outputs, Cloud.AWS)
    assert caught.value.reason == "cluster_unreachable"
