"""Ask the cluster why a workload is not ready: its pods, their events, the end of a log."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from exclave.base.errors import Problem
from exclave.base.json_values import JsonObject, object_or_empty, text_or_empty
from exclave.runner.kube.api.client import ClusterClient, LogSelection
from exclave.runner.kube.api.discovery import Resource
from exclave.runner.kube.api.lists import Selection
from exclave.runner.kube.changes.ownership import read_uid
from exclave.runner.kube.rollouts.diagnosis import Cause, Diagnosis, diagnose_workload
from exclave.runner.kube.rollouts.pods import select_current, write_selector
from exclave.runner.kube.rollouts.ready import find_condition
from exclave.runner.kube.rollouts.watching import Followed

_POD: Final = Resource("", "v1", "Pod", "pods", namespaced=True)
_EVENT: Final = Resource("", "v1", "Event", "events", namespaced=True)
_REPLICA_SET: Final = Resource("apps", "v1", "ReplicaSet", "replicasets", namespaced=True)
_WITH_PODS: Final = frozenset({"Deployment", "StatefulSet", "DaemonSet", "Job"})
_MOST_PODS: Final = 5
"""Unready pods of one workload that are looked at."""


@dataclass(frozen=True, slots=True)
class Inquiry:
    """What a look at a workload showed."""

    diagnosis: Diagnosis
    log: Sequence[str] = ()
    """The last lines of the container that failed."""
    scaled_at: str = ""
    """When the cluster last began to add a node for its pods; empty if it did not."""


async def inquire(client: ClusterClient, entry: Followed) -> Inquiry:
    """Return why an object is not ready."""
    readiness, namespace = entry.readiness, entry.id.namespace
    if entry.id.kind not in _WITH_PODS or not entry.value:
        cause = Cause.FAILED if readiness.failed else Cause.WAITING
        return Inquiry(Diagnosis(cause, readiness.text))
    workload: JsonObject = {**entry.value, "kind": entry.id.kind}
    current = await list_current_pods(client, workload)
    pods = [pod for pod in current if not _is_ready(pod)][:_MOST_PODS]
    events: list[JsonObject] = []
    for value in (*pods, workload):
        events += await _list_events(client, namespace, read_uid(value))
    diagnosis = diagnose_workload(workload, pods, events)
    if readiness.failed:
        text = diagnosis.text or readiness.text
        diagnosis = replace(diagnosis, cause=_worsen(diagnosis.cause), text=text)
    elif not diagnosis.text:
        diagnosis = replace(diagnosis, text=readiness.text)
    return Inquiry(diagnosis, await _read_log(client, namespace, diagnosis), _find_scale_up(events))


async def list_current_pods(client: ClusterClient, workload: JsonObject) -> list[JsonObject]:
    """Return the pods of a workload's newest version, the newest pod first."""
    labels = write_selector(workload)
    if not labels:
        return []
    namespace = text_or_empty(object_or_empty(workload.get("metadata")).get("namespace"))
    selection = Selection(namespace, labels)
    pods = (await client.list_objects(_POD, selection)).items
    sets: Sequence[JsonObject] = ()
    if workload.get("kind") == "Deployment":
        sets = (await client.list_objects(_REPLICA_SET, selection)).items
    return select_current(workload, pods, sets)


async def _list_events(client: ClusterClient, namespace: str, uid: str) -> list[JsonObject]:
    selection = Selection(namespace, fields=f"involvedObject.uid={uid}")
    try:
        events = (await client.list_objects(_EVENT, selection)).items
    except Problem:  # without the right to read events there is still a diagnosis
        return []
    return sorted(events, key=_read_time)


async def _read_log(client: ClusterClient, namespace: str, diagnosis: Diagnosis) -> Sequence[str]:
    if diagnosis.cause not in {Cause.CRASH, Cause.OUT_OF_MEMORY, Cause.FAILED} or not diagnosis.pod:
        return ()
    wanted = LogSelection(container=diagnosis.container, previous=diagnosis.previous)
    try:
        text = await client.read_log(namespace, diagnosis.pod, wanted)
    except Problem:
        return ()
    return [line for line in text.splitlines() if line.strip()]


def _worsen(cause: Cause) -> Cause:
    """Return the cause of something that will not be tried again."""
    return Cause.FAILED if cause in {Cause.CRASH, Cause.NOT_READY, Cause.WAITING} else cause


def _find_scale_up(events: Sequence[JsonObject]) -> str:
    times = [_read_time(event) for event in events if event.get("reason") == "TriggeredScaleUp"]
    return max(times, default="")


def _is_ready(pod: JsonObject) -> bool:
    condition = find_condition(pod, "Ready")
    phase = object_or_empty(pod.get("status")).get("phase")
    return phase == "Succeeded" or (condition is not None and condition.get("status") == "True")


def _read_time(event: JsonObject) -> str:
    return text_or_empty(event.get("lastTimestamp")) or text_or_empty(event.get("eventTime"))
