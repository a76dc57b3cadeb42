"""When an object is ready, by its kind; the statuses were recorded from a cluster."""

import pytest

from exclave.base.json_values import Json, JsonObject
from exclave.runner.kube.rollouts.ready import check_ready, needs_wait


def make(api_version: str, kind: str, spec: JsonObject, status: JsonObject) -> JsonObject:
    metadata: JsonObject = {"name": "x", "generation": 2}
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": metadata,
        "spec": spec,
        "status": status,
    }


def condition(name: str, status: str = "True", message: str = "") -> Json:
    return {"type": name, "status": status, "message": message}


def deployment(spec: JsonObject | None = None, **status: Json) -> JsonObject:
    counts: dict[str, Json] = {
        "observedGeneration": 2,
        "replicas": 2,
        "updatedReplicas": 2,
        "availableReplicas": 2,
    }
    return make("apps/v1", "Deployment", {"replicas": 2, **(spec or {})}, {**counts, **status})


def stateful(spec: JsonObject | None = None, **status: Json) -> JsonObject:
    counts: dict[str, Json] = {"observedGeneration": 2, "readyReplicas": 3, "updatedReplicas": 3}
    return make("apps/v1", "StatefulSet", {"replicas": 3, **(spec or {})}, {**counts, **status})


def daemon(**status: Json) -> JsonObject:
    counts: dict[str, Json] = {
        "observedGeneration": 2,
        "desiredNumberScheduled": 2,
        "updatedNumberScheduled": 2,
        "numberAvailable": 2,
    }
    return make("apps/v1", "DaemonSet", {}, {**counts, **status})


def custom(*conditions: Json, **status: Json) -> JsonObject:
    return make("example.com/v1", "Database", {}, {"conditions": list(conditions), **status})


PARTITION: JsonObject = {"updateStrategy": {"rollingUpdate": {"partition": 2}}}
BY_HAND: JsonObject = {"updateStrategy": {"type": "OnDelete"}}
BALANCER: JsonObject = {"type": "LoadBalancer"}


@pytest.mark.parametrize(
    ("value", "ready"),
    [
        (deployment(), True),
        (deployment(observedGeneration=1), False),
        (deployment(updatedReplicas=1), False),
        (deployment(availableReplicas=1), False),
        (deployment(replicas=3), False),
        (deployment({"paused": True}, observedGeneration=1), True),
        (deployment({"replicas": 0}, replicas=0, updatedReplicas=0, availableReplicas=0), True),
        (make("apps/v1", "Deployment", {}, {}), False),
        (stateful(), True),
        (stateful(readyReplicas=2), False),
        (stateful(updatedReplicas=1), False),
        (stateful(PARTITION, updatedReplicas=1), True),
        (stateful(BY_HAND, updatedReplicas=0), True),
        (daemon(), True),
        (daemon(numberAvailable=1), False),
        (daemon(updatedNumberScheduled=1), False),
        (make("batch/v1", "Job", {}, {"conditions": [condition("Complete")]}), True),
        (make("batch/v1", "Job", {}, {"active": 1}), False),
        (make("batch/v1", "Job", {"suspend": True}, {}), True),
        (make("v1", "PersistentVolumeClaim", {}, {"phase": "Bound"}), True),
        (make("v1", "PersistentVolumeClaim", {}, {"phase": "Pending"}), False),
        (make("v1", "Service", {"type": "ClusterIP"}, {}), True),
        (make("v1", "Service", BALANCER, {"loadBalancer": {}}), False),
        (make("v1", "Service", BALANCER, {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}), True),
        (make("v1", "ConfigMap", {}, {}), True),
        (custom(), True),
        (custom(condition("Ready")), True),
        (custom(condition("Ready", "False")), False),
        (custom(condition("Ready"), observedGeneration=1), False),
        (custom(condition("Ready"), observedGeneration="1"), True),
        (custom(condition("Available", "False")), False),
        (custom(condition("Synced", "False")), True),
    ],
)
def test_an_object_is_ready(value: JsonObject, *, ready: bool) -> None:
    assert check_ready(value).ready is ready


@pytest.mark.parametrize(
    "value",
    [
        make("batch/v1", "Job", {}, {"conditions": [condition("Failed", message="too often")]}),
        custom(condition("Stalled", message="too often"), condition("Ready", "False")),
    ],
)
def test_an_object_that_has_failed_for_good_says_why(value: JsonObject) -> None:
    readiness = check_ready(value)

    assert (readiness.ready, readiness.failed, readiness.text) == (False, True, "too often")


def test_an_annotation_takes_an_object_out_of_the_wait() -> None:
    metadata = {"annotations": {"exclave.dev/wait": "none"}}

    assert check_ready({**custom(condition("Ready", "False")), "metadata": metadata}).ready


def test_kinds_that_only_exist_are_not_waited_for() -> None:
    assert not needs_wait(make("v1", "ConfigMap", {}, {}))
    assert not needs_wait(make("networking.k8s.io/v1", "Ingress", {}, {}))
    assert needs_wait(deployment())
    assert needs_wait(custom())
