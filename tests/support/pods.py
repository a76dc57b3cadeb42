"""What a kubelet reports about a pod: running, done, or failing in the way that was asked for.

Annotations of a pod template choose the way:

- `bed/fail`: one of `Failure`; without it, the pod runs, or has succeeded if it is one of a Job.
- `bed/delay`: seconds in which the pod runs without being ready, before that happens.
- `bed/log`: what its containers have printed.
- `bed/exec`: how a command in it ends, such as `0 ready` or `1 no route`; without it, none is served.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from enum import StrEnum

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from exclave.base.json_values import Json, JsonObject

CRASH_LOG = (
    "starting\nconnecting to db:5432\npanic: cannot reach the database: connection refused\n"
)
MEMORY_EXIT, CRASH_EXIT, RESTARTS = 137, 1, 3


class Failure(StrEnum):
    """Ways in which a pod can fail."""

    IMAGE = "image"
    """Its image does not exist."""
    CRASH = "crash"
    """Its program ends with exit code 1, again and again."""
    OOM = "oom"
    """It is killed for its memory limit."""
    CONFIG = "config"
    """A Secret that its environment needs does not exist."""
    VOLUME = "volume"
    """A ConfigMap that it mounts does not exist."""
    UNREADY = "unready"
    """It runs, but its readiness probe fails."""
    HANG = "hang"
    """The node does nothing about it."""


class _Part(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)


class Metadata(_Part):
    """Names of a pod, and what was asked for by annotation."""

    namespace: str
    name: str
    uid: str
    annotations: dict[str, str] = {}
    deletion_timestamp: str | None = None


class Container(_Part):
    """One container of a pod."""

    name: str
    image: str


class PodSpec(_Part):
    """What a pod runs."""

    containers: list[Container]
    init_containers: list[Container] = []
    restart_policy: str = "Always"


class Pod(_Part):
    """A pod as the API server describes it."""

    metadata: Metadata
    spec: PodSpec

    @property
    def failure(self) -> Failure | None:
        """How the pod is to fail."""
        asked = self.metadata.annotations.get("bed/fail")
        return Failure(asked) if asked else None

    @property
    def delay_s(self) -> float:
        """How long the pod runs before anything happens."""
        return float(self.metadata.annotations.get("bed/delay", "0"))

    @property
    def log(self) -> str:
        """What its containers have printed."""
        usual = CRASH_LOG if self.failure is Failure.CRASH else "ready\n"
        return self.metadata.annotations.get("bed/log", usual)


def make_started(pod: Pod, address: str) -> JsonObject:
    """Return the status of a pod that runs and is not ready yet."""
    states = [_describe(container, _running(), ready=False) for container in pod.spec.containers]
    return _make_status(pod, "Running", states, address, ready=False)


def make_status(pod: Pod, address: str) -> JsonObject:
    """Return the status in which a pod stays."""
    once = pod.spec.restart_policy != "Always"
    ready = pod.failure is None and not once
    states = [
        {**_describe(container, _running(), ready=ready), **_fail(pod, container)}
        for container in pod.spec.containers
    ]
    return _make_status(pod, _find_phase(pod), states, address, ready=ready)


def list_events(pod: Pod) -> Iterator[tuple[str, str, str]]:
    """Yield type, reason and message of the events that come with a failure."""
    for container in pod.spec.containers:
        image, name = container.image, container.name
        match pod.failure:
            case Failure.IMAGE:
                yield "Normal", "Pulling", f'Pulling image "{image}"'
                yield "Warning", "Failed", f'Failed to pull image "{image}": {_missing(image)}'
                yield "Warning", "Failed", "Error: ErrImagePull"
                yield "Normal", "BackOff", f'Back-off pulling image "{image}"'
            case Failure.CONFIG:
                yield "Warning", "Failed", 'Error: secret "db-password" not found'
            case Failure.VOLUME:
                what = 'MountVolume.SetUp failed for volume "config" : configmap "app" not found'
                yield "Warning", "FailedMount", what
            case Failure.CRASH | Failure.OOM if pod.spec.restart_policy != "Never":
                what = f"Back-off restarting failed container {name} in pod {pod.metadata.name}"
                yield "Warning", "BackOff", what
            case Failure.UNREADY:
                what = "Readiness probe failed: HTTP probe failed with statuscode: 503"
                yield "Warning", "Unhealthy", what
            case _:
                pass


def _fail(pod: Pod, container: Container) -> JsonObject:
    """Return what is different about a container that fails, or that is done."""
    match pod.failure:
        case Failure.IMAGE:
            what = f'Back-off pulling image "{container.image}": ErrImagePull: {_missing(container.image)}'
            return _waiting("ImagePullBackOff", what)
        case Failure.CONFIG:
            return _waiting("CreateContainerConfigError", 'secret "db-password" not found')
        case Failure.VOLUME:
            return _waiting("ContainerCreating", "")
        case Failure.CRASH | Failure.OOM:
            return _crash(pod, container)
        case Failure.UNREADY | Failure.HANG:
            return {}
        case None:
            done = pod.spec.restart_policy != "Always"
            return {"state": _terminated(0, "Completed"), "started": False} if done else {}


def _crash(pod: Pod, container: Container) -> JsonObject:
    killed = pod.failure is Failure.OOM
    last = _terminated(*((MEMORY_EXIT, "OOMKilled") if killed else (CRASH_EXIT, "Error")))
    if pod.spec.restart_policy == "Never":
        return {"state": last, "started": False}
    about = pod.metadata
    what = f"back-off 40s restarting failed container={container.name}"
    what += f" pod={about.name}_{about.namespace}({about.uid})"
    return {
        **_waiting("CrashLoopBackOff", what),
        "lastState": last,
        "restartCount": RESTARTS,
    }


def _find_phase(pod: Pod) -> str:
    match pod.failure:
        case Failure.IMAGE | Failure.CONFIG | Failure.VOLUME | Failure.HANG:
            return "Pending"
        case Failure.CRASH | Failure.OOM if pod.spec.restart_policy == "Never":
            return "Failed"
        case None if pod.spec.restart_policy != "Always":
            return "Succeeded"
        case _:
            return "Running"


def _make_status(
    pod: Pod, phase: str, states: Sequence[JsonObject], address: str, *, ready: bool
) -> JsonObject:
    names = ", ".join(container.name for container in pod.spec.containers)
    unready: JsonObject = (
        {}
        if ready or phase == "Succeeded"
        else {
            "reason": "ContainersNotReady",
            "message": f"containers with unready status: [{names}]",
        }
    )
    conditions: list[Json] = [
        {"type": "PodReadyToStartContainers", "status": "True", "lastTransitionTime": now()},
        {"type": "Initialized", "status": "True", "lastTransitionTime": now()},
        {"type": "PodScheduled", "status": "True", "lastTransitionTime": now()},
    ]
    for kind in ("ContainersReady", "Ready"):
        conditions.append(
            {"type": kind, "status": str(ready), "lastTransitionTime": now(), **unready}
        )
    done: JsonObject = {"state": _terminated(0, "Completed"), "started": False}
    return {
        "phase": phase,
        "conditions": conditions,
        "containerStatuses": states,
        "initContainerStatuses": [
            {**_describe(container, {}, ready=True), **done}
            for container in pod.spec.init_containers
        ],
        "hostIP": "127.0.0.1",
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": now(),
    }


def _describe(container: Container, state: JsonObject, *, ready: bool) -> JsonObject:
    return {
        "name": container.name,
        "image": container.image,
        "imageID": "",
        "ready": ready,
        "started": True,
        "restartCount": 0,
        "state": state,
    }


def _running() -> JsonObject:
    return {"running": {"startedAt": now()}}


def _waiting(reason: str, message: str) -> JsonObject:
    return {"started": False, "state": {"waiting": {"reason": reason, "message": message}}}


def _terminated(code: int, reason: str) -> JsonObject:
    times = {"startedAt": now(), "finishedAt": now()}
    return {"terminated": {"exitCode": code, "reason": reason, **times}}


def _missing(image: str) -> str:
    return (
        f'rpc error: code = NotFound desc = failed to pull and unpack image "{image}": '
        f'failed to resolve reference "{image}": {image}: not found'
    )


def now() -> str:
    """Return the time as Kubernetes writes it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
