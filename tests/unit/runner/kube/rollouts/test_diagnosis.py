"""Why a workload is not ready, in one line; the statuses are as kubelets write them."""

import pytest

from exclave.base.json_values import Json, JsonObject
from exclave.runner.kube.rollouts.diagnosis import Cause, diagnose_workload
from exclave.runner.kube.rollouts.pods import select_current, write_selector

WEB: JsonObject = {"kind": "Deployment", "metadata": {"name": "web", "uid": "d"}, "status": {}}


def pod(container: JsonObject, *conditions: Json, phase: str = "Pending") -> JsonObject:
    status = {
        "phase": phase,
        "conditions": [{"type": "Ready", "status": "False"}, *conditions],
        "containerStatuses": [
            {"name": "app", "image": "shop/web:1", "restartCount": 0, **container}
        ],
    }
    return {"kind": "Pod", "metadata": {"name": "web-1", "uid": "p"}, "status": status}


def waiting(reason: str, message: str) -> JsonObject:
    return {"ready": False, "state": {"waiting": {"reason": reason, "message": message}}}


def event(reason: str, message: str, uid: str = "p") -> JsonObject:
    return {"reason": reason, "message": message, "involvedObject": {"uid": uid}}


BACK_OFF = waiting("CrashLoopBackOff", "back-off 40s restarting failed container")
NOT_FOUND = 'Failed to pull image "shop/web:1": rpc error: code = NotFound desc = not found'


@pytest.mark.parametrize(
    ("broken", "events", "cause", "text"),
    [
        (
            pod(waiting("ImagePullBackOff", 'Back-off pulling image "shop/web:1"')),
            [event("Failed", NOT_FOUND), event("Failed", "Error: ImagePullBackOff")],
            Cause.IMAGE_PULL,
            f"container app: shop/web:1: {NOT_FOUND}",
        ),
        (
            pod(waiting("InvalidImageName", "couldn't parse image name")),
            [],
            Cause.IMAGE_PULL,
            "container app: shop/web:1: couldn't parse image name",
        ),
        (
            pod(waiting("CreateContainerConfigError", 'secret "db" not found')),
            [],
            Cause.CONTAINER_CONFIG,
            'container app: secret "db" not found',
        ),
        (
            pod(
                {
                    **BACK_OFF,
                    "restartCount": 3,
                    "lastState": {"terminated": {"exitCode": 1, "reason": "Error"}},
                },
                phase="Running",
            ),
            [],
            Cause.CRASH,
            "container app exits with 1 (3 restarts)",
        ),
        (
            pod(
                {
                    **BACK_OFF,
                    "restartCount": 1,
                    "lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}},
                },
                phase="Running",
            ),
            [],
            Cause.OUT_OF_MEMORY,
            "container app was killed for its memory limit (1 restart)",
        ),
        (
            pod(
                {},
                {
                    "type": "PodScheduled",
                    "status": "False",
                    "message": "0/3 nodes are available: 3 Insufficient memory.",
                },
            ),
            [],
            Cause.UNSCHEDULABLE,
            "0/3 nodes are available: 3 Insufficient memory.",
        ),
        (
            pod(waiting("ContainerCreating", "")),
            [event("FailedMount", 'MountVolume.SetUp failed: configmap "c" not found')],
            Cause.VOLUME,
            'MountVolume.SetUp failed: configmap "c" not found',
        ),
        (
            pod({"ready": False, "state": {"running": {}}}, phase="Running"),
            [event("Unhealthy", "Readiness probe failed: status code 503")],
            Cause.NOT_READY,
            "container app runs, but is not ready: Readiness probe failed: status code 503",
        ),
        (pod(waiting("ContainerCreating", "")), [], Cause.WAITING, ""),
        (
            pod(waiting("ContainerCreating", "")),
            [event("FailedMount", "of another pod", uid="other")],
            Cause.WAITING,
            "",
        ),
    ],
)
def test_a_pod_says_why(
    broken: JsonObject, events: list[JsonObject], cause: Cause, text: str
) -> None:
    found = diagnose_workload(WEB, [broken], events)

    assert (found.cause, found.text) == (cause, text)


def test_a_workload_whose_pods_are_refused_says_the_servers_sentence() -> None:
    quota = 'pods "web-1" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1'
    failure = {"type": "ReplicaFailure", "status": "True", "message": quota}
    refused: JsonObject = {**WEB, "status": {"conditions": [failure]}}
    stateful: JsonObject = {"kind": "StatefulSet", "metadata": {"uid": "s"}}

    assert diagnose_workload(refused, [], []).text == quota
    by_event = diagnose_workload(stateful, [], [event("FailedCreate", quota, uid="s")])
    assert (by_event.cause, by_event.text) == (Cause.REFUSED, quota)


def test_the_worst_of_several_pods_is_told() -> None:
    slow = pod(waiting("ContainerCreating", ""))
    broken = pod(waiting("ErrImagePull", "no such image"))

    assert diagnose_workload(WEB, [slow, broken], []).cause is Cause.IMAGE_PULL


def replica_set(name: str, revision: str) -> JsonObject:
    return {
        "metadata": {
            "labels": {"pod-template-hash": name},
            "annotations": {"deployment.kubernetes.io/revision": revision},
            "ownerReferences": [{"uid": "d"}],
        }
    }


def labelled(name: str, made: str, **labels: str) -> JsonObject:
    own = {key.replace("_", "-"): value for key, value in labels.items()}
    return {"metadata": {"name": name, "creationTimestamp": made, "labels": own}}


def test_only_pods_of_the_newest_version_count() -> None:
    pods = [
        labelled("old", "2026-01-01", pod_template_hash="a"),
        labelled("first", "2026-01-02", pod_template_hash="b"),
        labelled("second", "2026-01-03", pod_template_hash="b"),
    ]

    current = select_current(WEB, pods, [replica_set("a", "9"), replica_set("b", "10")])

    assert [one["metadata"] for one in current] == [pods[2]["metadata"], pods[1]["metadata"]]


def test_pods_of_a_stateful_set_are_known_by_the_revision_it_updates_to() -> None:
    workload: JsonObject = {"kind": "StatefulSet", "status": {"updateRevision": "s-2"}}
    pods = [
        labelled("s-0", "2026-01-01", controller_revision_hash="s-1"),
        labelled("s-1", "2026-01-02", controller_revision_hash="s-2"),
    ]

    assert select_current(workload, pods, []) == [pods[1]]


def test_a_selector_is_written_as_a_query() -> None:
    expressions: Json = [
        {"key": "tier", "operator": "In", "values": ["a", "b"]},
        {"key": "old", "operator": "DoesNotExist"},
    ]
    selector: JsonObject = {"matchLabels": {"app": "web"}, "matchExpressions": expressions}

    assert write_selector({"spec": {"selector": selector}}) == "app=web,tier in (a,b),!old"
