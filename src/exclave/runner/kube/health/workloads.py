"""What is wrong with the workloads of a part: not ready, gone, or restarted."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple

from exclave.base.json_values import JsonObject, list_or_empty, object_or_empty, text_or_empty
from exclave.runner.kube.api.client import ClusterClient
from exclave.runner.kube.api.objects import ObjectId
from exclave.runner.kube.changes.parallel import run_all
from exclave.runner.kube.rollouts.inquiry import inquire, list_current_pods
from exclave.runner.kube.rollouts.ready import check_ready
from exclave.runner.kube.rollouts.watching import Followed

READINESS: Final = "readiness"
RESTARTS: Final = "restarts"
_RESTARTING: Final = frozenset({"Deployment", "StatefulSet", "DaemonSet"})


class Fault(NamedTuple):
    """A check that does not pass, and why."""

    check: str
    text: str


async def find_faults(
    client: ClusterClient, objects: Sequence[ObjectId], since: datetime
) -> list[Fault]:
    """Return what is wrong with objects; `since` is a time of the cluster's own clock."""

    async def find(object_id: ObjectId) -> list[Fault]:
        return await _find_faults(client, object_id, since)

    return [fault for faults in await run_all(objects, find) for fault in faults]


async def find_ready_pod(
    client: ClusterClient, objects: Sequence[ObjectId]
) -> tuple[str, str] | None:
    """Return namespace and name of a ready pod of the workloads."""
    for object_id in objects:
        if object_id.kind not in _RESTARTING:
            continue
        live = await client.get(object_id)
        for pod in await list_current_pods(client, _add_kind(live or {}, object_id)):
            if all(status.get("ready") is True for status in _list_containers(pod)):
                return object_id.namespace, _read_name(pod)
    return None


async def _find_faults(client: ClusterClient, object_id: ObjectId, since: datetime) -> list[Fault]:
    live = await client.get(object_id)
    label = f"{object_id.kind} {object_id.namespace}/{object_id.name}".replace(" /", " ")
    if live is None:
        return [Fault(READINESS, f"{label}: it is gone")]
    workload = _add_kind(live, object_id)
    readiness = check_ready(workload)
    faults: list[Fault] = []
    if not readiness.ready:
        inquiry = await inquire(client, Followed(object_id, live, readiness))
        last = f"; last line: {inquiry.log[-1]}" if inquiry.log else ""
        faults.append(Fault(READINESS, f"{label}: {inquiry.diagnosis.text}{last}"))
    if object_id.kind in _RESTARTING:
        for pod in await list_current_pods(client, workload):
            faults += [Fault(RESTARTS, f"{label}: {text}") for text in list_restarts(pod, since)]
    return faults


def list_restarts(pod: JsonObject, since: datetime) -> list[str]:
    """Return the containers of a pod that ended since then, one line each."""
    lines = []
    for status in _list_containers(pod):
        ended = object_or_empty(object_or_empty(status.get("lastState")).get("terminated"))
        at = text_or_empty(ended.get("finishedAt"))
        if at and status.get("restartCount") and datetime.fromisoformat(at) > since:
            why = "killed for its memory limit" if ended.get("reason") == "OOMKilled" else ""
            why = why or f"exit code {ended.get('exitCode')}"
            count = status.get("restartCount")
            name = text_or_empty(status.get("name"))
            lines.append(f"container {name} restarted ({why}; {count} in all)")
    return lines


def _list_containers(pod: JsonObject) -> list[JsonObject]:
    status = object_or_empty(pod.get("status"))
    return [object_or_empty(entry) for entry in list_or_empty(status.get("containerStatuses"))]


def _read_name(pod: JsonObject) -> str:
    return text_or_empty(object_or_empty(pod.get("metadata")).get("name"))


def _add_kind(value: JsonObject, object_id: ObjectId) -> JsonObject:
    return {"apiVersion": object_id.api_version, **value, "kind": object_id.kind}
