"""Objects are applied in an order in which nothing lacks what it needs."""

import pytest

from exclave.base.json_values import JsonObject
from exclave.runner.kube.api.objects import identify
from exclave.runner.kube.changes.waves import find_wave, split_waves


def make(api_version: str, kind: str, wave: str = "") -> JsonObject:
    annotations = {"exclave.dev/wave": wave} if wave else {}
    metadata: JsonObject = {"name": kind.lower(), "annotations": annotations}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}


def wave_of(value: JsonObject) -> int:
    return find_wave(identify(value), value)


def test_waves_follow_each_other_from_namespaces_to_webhooks() -> None:
    objects = [
        make("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"),
        make("apps/v1", "Deployment"),
        make("v1", "Service"),
        make("example.com/v1", "Database"),
        make("rbac.authorization.k8s.io/v1", "RoleBinding"),
        make("v1", "Secret"),
        make("storage.k8s.io/v1", "StorageClass"),
        make("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
        make("v1", "Namespace"),
    ]

    waves = [[value["kind"] for value in wave] for wave in split_waves(objects, wave_of)]

    assert waves == [
        ["CustomResourceDefinition", "Namespace"],
        ["StorageClass"],
        ["Secret"],
        ["RoleBinding"],
        ["Service"],
        ["Deployment", "Database"],
        ["ValidatingWebhookConfiguration"],
    ]


@pytest.mark.parametrize(
    ("wave", "number"), [("-3", -3), ("12", 12), ("99999", 1000), ("x", 2), ("", 2)]
)
def test_an_annotation_moves_an_object(wave: str, number: int) -> None:
    assert wave_of(make("v1", "ConfigMap", wave)) == number


def test_a_custom_kind_with_the_name_of_a_built_in_one_is_a_workload() -> None:
    assert wave_of(make("gateway.example.com/v1", "Service")) == wave_of(make("apps/v1", "Job"))
