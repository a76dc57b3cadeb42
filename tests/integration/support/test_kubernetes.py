"""The cluster for tests: workloads become ready, or fail in the words of Kubernetes."""

import time
from collections.abc import Callable, Mapping
from typing import TypeVar

import pytest

from exclave.base.json_values import (
    Json,
    JsonObject,
    list_or_empty,
    object_or_empty,
    require_object,
    text_or_empty,
)
from tests.support.kubernetes import Cluster
from tests.support.pods import CRASH_LOG, Failure

IMAGE = "registry.example/app:1"
Value = TypeVar("Value")


def wait_for(find: Callable[[], Value | None], within_s: float = 60) -> Value:
    deadline = time.monotonic() + within_s
    while (found := find()) is None:
        assert time.monotonic() < deadline, "it did not come in time"
        time.sleep(0.02)
    return found


def get(document: Json, *path: str) -> Json:
    for name in path:
        document = object_or_empty(document).get(name)
    return document


def make_template(annotations: Mapping[str, str], **spec: Json) -> JsonObject:
    return {
        "metadata": {"labels": {"app": "app"}, "annotations": annotations},
        "spec": {"containers": [{"name": "app", "image": IMAGE}], **spec},
    }


def deploy(cluster: Cluster, namespace: str, *, replicas: int = 1, **annotations: str) -> str:
    """Create a Deployment; return its path."""
    folder = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    spec: JsonObject = {
        "replicas": replicas,
        "selector": {"matchLabels": {"app": "app"}},
        "template": make_template({f"bed/{name}": value for name, value in annotations.items()}),
    }
    cluster.request("POST", folder, {"metadata": {"name": "app"}, "spec": spec})
    return f"{folder}/app"


def run_job(cluster: Cluster, namespace: str, **annotations: str) -> str:
    """Create a Job; return its path."""
    folder = f"/apis/batch/v1/namespaces/{namespace}/jobs"
    asked = {f"bed/{name}": value for name, value in annotations.items()}
    spec: JsonObject = {"backoffLimit": 0, "template": make_template(asked, restartPolicy="Never")}
    cluster.request("POST", folder, {"metadata": {"name": "app"}, "spec": spec})
    return f"{folder}/app"


def find_pod(cluster: Cluster, namespace: str) -> JsonObject | None:
    """Return the first pod about which the node has said something."""
    listed = cluster.request("GET", f"/api/v1/namespaces/{namespace}/pods")
    for pod in list_or_empty(listed["items"]):
        if get(pod, "status", "containerStatuses"):
            return require_object(pod, "the pod")
    return None


def list_messages(cluster: Cluster, namespace: str) -> list[str]:
    listed = cluster.request("GET", f"/api/v1/namespaces/{namespace}/events")
    return [text_or_empty(get(event, "message")) for event in list_or_empty(listed["items"])]


def wait_available(cluster: Cluster, path: str, replicas: int) -> None:
    def find() -> bool | None:
        status = cluster.request("GET", path)["status"]
        return get(status, "availableReplicas") == replicas or None

    wait_for(find)


def test_a_deployment_becomes_ready_and_its_pods_go_with_it(
    cluster: Cluster, namespace: str
) -> None:
    path = deploy(cluster, namespace, replicas=3)

    wait_available(cluster, path, 3)
    addresses = {
        get(pod, "status", "podIP")
        for pod in list_or_empty(
            cluster.request("GET", f"/api/v1/namespaces/{namespace}/pods")["items"]
        )
    }
    cluster.request("DELETE", path, {"propagationPolicy": "Background"})

    assert len(addresses) == 3
    pods = f"/api/v1/namespaces/{namespace}/pods"
    wait_for(lambda: True if not cluster.request("GET", pods)["items"] else None)


@pytest.mark.parametrize(
    ("annotations", "condition"),
    [({}, "Complete"), ({"fail": "crash"}, "Failed"), ({"delay": "0.2"}, "Complete")],
)
def test_a_job_ends(
    cluster: Cluster, namespace: str, annotations: dict[str, str], condition: str
) -> None:
    path = run_job(cluster, namespace, **annotations)

    def find() -> bool | None:
        conditions = list_or_empty(get(cluster.request("GET", path), "status", "conditions"))
        return any(get(one, "type") == condition for one in conditions) or None

    assert wait_for(find)


@pytest.mark.parametrize(
    ("failure", "phase", "state", "reason", "words"),
    [
        (Failure.IMAGE, "Pending", "waiting", "ImagePullBackOff", f"{IMAGE}: not found"),
        (Failure.CONFIG, "Pending", "waiting", "CreateContainerConfigError", "not found"),
        (Failure.VOLUME, "Pending", "waiting", "ContainerCreating", "MountVolume.SetUp failed"),
        (Failure.CRASH, "Running", "waiting", "CrashLoopBackOff", "restarting failed container"),
        (Failure.OOM, "Running", "waiting", "CrashLoopBackOff", "restarting failed container"),
        (Failure.UNREADY, "Running", "running", None, "Readiness probe failed"),
    ],
)
def test_a_pod_fails_as_asked(
    cluster: Cluster,
    namespace: str,
    failure: Failure,
    phase: str,
    state: str,
    reason: str | None,
    words: str,
) -> None:
    path = deploy(cluster, namespace, fail=failure)

    pod = wait_for(lambda: find_pod(cluster, namespace))
    container = list_or_empty(get(pod, "status", "containerStatuses"))[0]

    assert get(pod, "status", "phase") == phase
    assert get(container, "state", state, "reason") == reason
    assert get(container, "ready") is False
    assert wait_for(lambda: [m for m in list_messages(cluster, namespace) if words in m] or None)
    assert get(cluster.request("GET", path), "status", "availableReplicas") is None


@pytest.mark.parametrize(
    ("failure", "code", "reason"), [(Failure.CRASH, 1, "Error"), (Failure.OOM, 137, "OOMKilled")]
)
def test_a_crash_leaves_its_exit_code(
    cluster: Cluster, namespace: str, failure: Failure, code: int, reason: str
) -> None:
    deploy(cluster, namespace, fail=failure)

    pod = wait_for(lambda: find_pod(cluster, namespace))
    container = list_or_empty(get(pod, "status", "containerStatuses"))[0]

    assert get(container, "lastState", "terminated", "exitCode") == code
    assert get(container, "lastState", "terminated", "reason") == reason
    assert get(container, "restartCount") == 3


def test_a_pod_that_hangs_is_scheduled_and_no_more(cluster: Cluster, namespace: str) -> None:
    deploy(cluster, namespace, fail=Failure.HANG)

    def find() -> JsonObject | None:
        items = cluster.request("GET", f"/api/v1/namespaces/{namespace}/pods")["items"]
        return next(
            (object_or_empty(pod) for pod in list_or_empty(items) if get(pod, "spec", "nodeName")),
            None,
        )

    assert get(wait_for(find), "status", "phase") == "Pending"
    assert find_pod(cluster, namespace) is None


def test_a_pod_that_is_late_runs_before_it_is_ready(cluster: Cluster, namespace: str) -> None:
    path = deploy(cluster, namespace, delay="1")

    pod = wait_for(lambda: find_pod(cluster, namespace))
    container = list_or_empty(get(pod, "status", "containerStatuses"))[0]

    assert (get(pod, "status", "phase"), get(container, "ready")) == ("Running", False)
    wait_available(cluster, path, 1)


def test_a_running_pod_fails_when_its_annotation_changes(cluster: Cluster, namespace: str) -> None:
    path = deploy(cluster, namespace)
    wait_available(cluster, path, 1)
    pod = wait_for(lambda: find_pod(cluster, namespace))
    name = get(pod, "metadata", "name")

    changed = cluster.api.patch(
        f"/api/v1/namespaces/{namespace}/pods/{name}",
        json={"metadata": {"annotations": {"bed/fail": "unready"}}},
        headers={"Content-Type": "application/merge-patch+json"},
    )

    assert changed.is_success
    wait_for(
        lambda: get(cluster.request("GET", path), "status", "unavailableReplicas") == 1 or None
    )


@pytest.mark.parametrize(
    ("annotations", "options", "text"),
    [
        ({"fail": "crash"}, "", CRASH_LOG),
        ({"fail": "crash"}, "?previous=true&tailLines=1", CRASH_LOG.splitlines()[-1] + "\n"),
        ({"log": "one\ntwo\nthree"}, "?tailLines=2", "two\nthree"),
        ({"log": "one\ntwo"}, "?limitBytes=3", "one"),
    ],
)
def test_logs_are_read_from_the_node(
    cluster: Cluster, namespace: str, annotations: dict[str, str], options: str, text: str
) -> None:
    deploy(cluster, namespace, replicas=1, **annotations)
    pod = wait_for(lambda: find_pod(cluster, namespace))
    name = get(pod, "metadata", "name")

    answer = cluster.api.get(f"/api/v1/namespaces/{namespace}/pods/{name}/log{options}")

    assert answer.text == text


def test_rules_of_the_server_are_real(cluster: Cluster, namespace: str) -> None:
    quota: JsonObject = {"metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}}
    cluster.request("POST", f"/api/v1/namespaces/{namespace}/resourcequotas", quota)
    quota_path = f"/api/v1/namespaces/{namespace}/resourcequotas/none"
    wait_for(lambda: get(cluster.request("GET", quota_path), "status", "hard"))

    path = deploy(cluster, namespace)

    def find() -> bool | None:
        conditions = list_or_empty(get(cluster.request("GET", path), "status", "conditions"))
        failed = [one for one in conditions if get(one, "type") == "ReplicaFailure"]
        return (
            any("exceeded quota: none" in text_or_empty(get(one, "message")) for one in failed)
            or None
        )

    assert wait_for(find)
