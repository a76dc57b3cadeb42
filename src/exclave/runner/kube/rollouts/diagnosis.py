"""Why a workload is not ready: one line, from its pods, its conditions and their events."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from exclave.base.json_values import JsonObject, list_or_empty, object_or_empty, text_or_empty
from exclave.runner.kube.rollouts.ready import find_condition


class Cause(StrEnum):
    """Why something is not ready, the worst first."""

    IMAGE_PULL = "image_pull"
    CONTAINER_CONFIG = "container_config"
    OUT_OF_MEMORY = "out_of_memory"
    CRASH = "crash"
    REFUSED = "refused"
    VOLUME = "volume"
    UNSCHEDULABLE = "unschedulable"
    FAILED = "failed"
    """The object itself says that it has failed for good."""
    NOT_READY = "not_ready"
    WAITING = "waiting"


@dataclass(frozen=True, slots=True)
class Limit:
    """When a cause ends the wait: seconds since it was seen first, and restarts."""

    seconds: float
    restarts: int = 0


LIMITS: Final = {
    Cause.IMAGE_PULL: Limit(60.0),
    Cause.CONTAINER_CONFIG: Limit(60.0),
    Cause.CRASH: Limit(60.0, restarts=3),
    Cause.OUT_OF_MEMORY: Limit(0.0, restarts=2),
    Cause.REFUSED: Limit(30.0),
    Cause.UNSCHEDULABLE: Limit(300.0),
    Cause.VOLUME: Limit(180.0),
    Cause.FAILED: Limit(0.0),
}
"""Causes that are not here end the wait only by the timeout of the job."""

_PULLS: Final = frozenset(
    {"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"}
)
_CONFIGS: Final = frozenset(
    {"CreateContainerConfigError", "CreateContainerError", "RunContainerError"}
)
_VOLUME_EVENTS: Final = frozenset({"FailedMount", "FailedAttachVolume", "ProvisioningFailed"})
HINTS: Final = {
    Cause.IMAGE_PULL: "check that the image exists and that the nodes may pull it",
    Cause.CONTAINER_CONFIG: "create what it refers to, then deploy again",
    Cause.OUT_OF_MEMORY: "raise resources.limits.memory",
    Cause.CRASH: "the log of the container says more",
    Cause.REFUSED: "the API server refuses the pods: quota, pod security or a webhook",
    Cause.VOLUME: "look at the claim, its storage class and the node's driver",
    Cause.UNSCHEDULABLE: "give the cluster room, or ask for less",
    Cause.FAILED: "",
    Cause.NOT_READY: "look at the readiness probe and at the log of the container",
    Cause.WAITING: "",
}


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Why an object is not ready."""

    cause: Cause
    text: str
    pod: str = ""
    container: str = ""
    """The container whose log says more; empty if none does."""
    restarts: int = 0
    previous: bool = False
    """Whether its log is that of the run before."""

    @property
    def rank(self) -> int:
        """How bad it is; 0 is the worst."""
        return list(Cause).index(self.cause)


def diagnose_workload(
    workload: JsonObject, pods: Sequence[JsonObject], events: Sequence[JsonObject]
) -> Diagnosis:
    """Return the worst of what is wrong with a workload; `events` are those of its pods."""
    refused = find_condition(workload, "ReplicaFailure")
    if refused is not None and refused.get("status") == "True":
        return Diagnosis(Cause.REFUSED, text_or_empty(refused.get("message")))
    findings = [diagnosis for pod in pods for diagnosis in diagnose_pod(pod, _select(events, pod))]
    refusals = [
        Diagnosis(Cause.REFUSED, text_or_empty(event.get("message")))
        for event in _select(events, workload)
        if event.get("reason") == "FailedCreate"
    ]
    waiting = Diagnosis(Cause.WAITING, "")
    return min(
        [*findings, *([] if pods else refusals), waiting], key=lambda diagnosis: diagnosis.rank
    )


def diagnose_pod(pod: JsonObject, events: Sequence[JsonObject]) -> Iterator[Diagnosis]:
    """Yield what is wrong with a pod; nothing if it is ready."""
    status = object_or_empty(pod.get("status"))
    name = text_or_empty(object_or_empty(pod.get("metadata")).get("name"))
    ready = find_condition(pod, "Ready")
    if status.get("phase") == "Succeeded" or (ready and ready.get("status") == "True"):
        return
    scheduled = find_condition(pod, "PodScheduled")
    if scheduled is not None and scheduled.get("status") == "False":
        yield Diagnosis(Cause.UNSCHEDULABLE, text_or_empty(scheduled.get("message")), name)
        return
    for container in (
        *list_or_empty(status.get("initContainerStatuses")),
        *list_or_empty(status.get("containerStatuses")),
    ):
        yield from _diagnose_container(name, object_or_empty(container), events)
    for event in events:
        if event.get("reason") in _VOLUME_EVENTS:
            yield Diagnosis(Cause.VOLUME, text_or_empty(event.get("message")), name)


def _diagnose_container(
    pod: str, status: JsonObject, events: Sequence[JsonObject]
) -> Iterator[Diagnosis]:
    name = text_or_empty(status.get("name"))
    state = object_or_empty(status.get("state"))
    waiting = object_or_empty(state.get("waiting"))
    reason = text_or_empty(waiting.get("reason"))
    if reason in _PULLS:
        text = _find_event(events, "Failed", "pull") or text_or_empty(waiting.get("message"))
        image = text_or_empty(status.get("image"))
        yield Diagnosis(Cause.IMAGE_PULL, f"container {name}: {image}: {text}", pod)
    elif reason in _CONFIGS:
        message = text_or_empty(waiting.get("message"))
        yield Diagnosis(Cause.CONTAINER_CONFIG, f"container {name}: {message}", pod)
    else:
        yield from _diagnose_end(pod, name, status, events)


def _diagnose_end(
    pod: str, name: str, status: JsonObject, events: Sequence[JsonObject]
) -> Iterator[Diagnosis]:
    """Yield why a container ended, or that it runs and is not ready."""
    state = object_or_empty(status.get("state"))
    now = object_or_empty(state.get("terminated"))
    last = object_or_empty(object_or_empty(status.get("lastState")).get("terminated"))
    ended = now or last
    count = status.get("restartCount")
    restarts = count if isinstance(count, int) else 0
    times = f"{restarts} restart{'' if restarts == 1 else 's'}"
    if ended.get("reason") == "OOMKilled":
        text = f"container {name} was killed for its memory limit ({times})"
        yield Diagnosis(Cause.OUT_OF_MEMORY, text, pod, name, restarts, previous=not now)
    elif ended.get("exitCode") and not ("running" in state and status.get("ready")):
        text = f"container {name} exits with {ended.get('exitCode')} ({times})"
        yield Diagnosis(Cause.CRASH, text, pod, name, restarts, previous=not now)
    elif "running" in state and status.get("ready") is not True:
        why = _find_event(events, "Unhealthy", "") or "its readiness probe fails"
        text = f"container {name} runs, but is not ready: {why}"
        yield Diagnosis(Cause.NOT_READY, text, pod, name, restarts)


def _find_event(events: Sequence[JsonObject], reason: str, word: str) -> str:
    """Return the message of the first event of a kind: later ones only say `back-off`."""
    for event in events:
        message = text_or_empty(event.get("message"))
        if event.get("reason") == reason and word in message.lower():
            return message
    return ""


def _select(events: Sequence[JsonObject], about: JsonObject) -> list[JsonObject]:
    uid = object_or_empty(about.get("metadata")).get("uid")
    return [
        event for event in events if object_or_empty(event.get("involvedObject")).get("uid") == uid
    ]
