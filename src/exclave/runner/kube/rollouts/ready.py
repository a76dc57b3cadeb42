"""Whether an object is ready: rules by kind, as functions of the object alone."""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from exclave.base.json_values import JsonObject, list_or_empty, object_or_empty, text_or_empty
from exclave.runner.kube.changes.ownership import read_annotation

WAIT_ANNOTATION: Final = "exclave.dev/wait"
"""`none`: a deploy does not wait for the object."""


class Readiness(NamedTuple):
    """Whether an object is ready; `failed` is final, `text` says what is missing."""

    ready: bool
    text: str = ""
    failed: bool = False


READY: Final = Readiness(ready=True)


def check_ready(value: JsonObject) -> Readiness:
    """Return whether an object is ready."""
    if read_annotation(value, WAIT_ANNOTATION) == "none":
        return READY
    check = _RULES.get(find_rule(value))
    return _check_conditions(value) if check is None else check(value)


def needs_wait(value: JsonObject) -> bool:
    """Return whether objects of this kind can be unready: ConfigMaps, for example, just exist."""
    return find_rule(value) not in _EXISTING


def find_rule(value: JsonObject) -> tuple[str, str]:
    """Return group and kind, by which the rule of an object is chosen."""
    group = text_or_empty(value.get("apiVersion")).rpartition("/")[0]
    return group, text_or_empty(value.get("kind"))


def find_condition(value: JsonObject, name: str) -> JsonObject | None:
    """Return a condition of an object's status."""
    for condition in list_or_empty(_status(value).get("conditions")):
        if object_or_empty(condition).get("type") == name:
            return object_or_empty(condition)
    return None


def _check_deployment(value: JsonObject) -> Readiness:
    spec, status = object_or_empty(value.get("spec")), _status(value)
    if spec.get("paused") is True:
        return READY
    if not _is_observed(value):
        return Readiness(ready=False, text="its controller has not seen the new version yet")
    wanted = _number(spec, "replicas", 1)
    updated, available = _number(status, "updatedReplicas"), _number(status, "availableReplicas")
    old = _number(status, "replicas") - updated
    ready = updated >= wanted and available >= wanted and old <= 0
    more = f", {old} of the old version still there" if old > 0 else ""
    return Readiness(ready, f"{min(updated, available)} of {wanted} ready{more}")


def _check_stateful_set(value: JsonObject) -> Readiness:
    spec, status = object_or_empty(value.get("spec")), _status(value)
    if not _is_observed(value):
        return Readiness(ready=False, text="its controller has not seen the new version yet")
    wanted = _number(spec, "replicas", 1)
    strategy = object_or_empty(spec.get("updateStrategy"))
    partition = _number(object_or_empty(strategy.get("rollingUpdate")), "partition")
    ready, updated = _number(status, "readyReplicas"), _number(status, "updatedReplicas")
    by_hand = strategy.get("type") == "OnDelete"
    done = ready >= wanted and (by_hand or updated >= wanted - partition)
    return Readiness(done, f"{ready} of {wanted} ready, {updated} updated")


def _check_daemon_set(value: JsonObject) -> Readiness:
    status = _status(value)
    if not _is_observed(value):
        return Readiness(ready=False, text="its controller has not seen the new version yet")
    wanted = _number(status, "desiredNumberScheduled")
    updated, available = (
        _number(status, key) for key in ("updatedNumberScheduled", "numberAvailable")
    )
    done = updated >= wanted and available >= wanted
    return Readiness(done, f"{min(updated, available)} of {wanted} nodes ready")


def _check_job(value: JsonObject) -> Readiness:
    if _is_true(find_condition(value, "Complete")):
        return READY
    failed = find_condition(value, "Failed")
    if failed is not None and _is_true(failed):
        text = text_or_empty(failed.get("message")) or text_or_empty(failed.get("reason"))
        return Readiness(ready=False, text=text, failed=True)
    if object_or_empty(value.get("spec")).get("suspend") is True:
        return READY
    return Readiness(ready=False, text="it has not completed yet")


def _check_claim(value: JsonObject) -> Readiness:
    phase = text_or_empty(_status(value).get("phase"))
    return Readiness(phase == "Bound", f"it is {phase or 'new'}", failed=phase == "Lost")


def _check_service(value: JsonObject) -> Readiness:
    spec = object_or_empty(value.get("spec"))
    if spec.get("type") != "LoadBalancer":
        return READY
    balancer = object_or_empty(_status(value).get("loadBalancer"))
    has_address = bool(list_or_empty(balancer.get("ingress")))
    return Readiness(has_address, "the load balancer has no address yet")


def _check_pod(value: JsonObject) -> Readiness:
    phase = text_or_empty(_status(value).get("phase"))
    if phase == "Succeeded" or _is_true(find_condition(value, "Ready")):
        return READY
    return Readiness(ready=False, text=f"it is {phase or 'new'}", failed=phase == "Failed")


def _check_established(value: JsonObject) -> Readiness:
    refused = find_condition(value, "NamesAccepted")
    if refused is not None and refused.get("status") == "False":
        text = text_or_empty(refused.get("message"))
        return Readiness(ready=False, text=text, failed=True)
    established = _is_true(find_condition(value, "Established"))
    return Readiness(established, "it is not established yet")


def _check_available(value: JsonObject) -> Readiness:
    condition = find_condition(value, "Available")
    text = "" if condition is None else text_or_empty(condition.get("message"))
    return Readiness(_is_true(condition), text or "it is not available yet")


def _check_conditions(value: JsonObject) -> Readiness:
    """Check a kind that we do not know by the conditions that most controllers write."""
    stalled = find_condition(value, "Stalled")
    if stalled is not None and _is_true(stalled):
        return Readiness(ready=False, text=text_or_empty(stalled.get("message")), failed=True)
    for name in ("Ready", "Available"):
        condition = find_condition(value, name)
        if condition is None:
            continue
        ready = _is_true(condition) and _is_observed(value)
        return Readiness(ready, text_or_empty(condition.get("message")) or f"it is not {name}")
    return READY


def _is_observed(value: JsonObject) -> bool:
    """Return whether the controller has seen the newest version of the object.

    Some controllers write a text as `observedGeneration`, which says nothing.
    """
    observed = _status(value).get("observedGeneration")
    generation = object_or_empty(value.get("metadata")).get("generation")
    if isinstance(observed, int) and isinstance(generation, int):
        return observed >= generation
    return not (observed is None and find_rule(value)[0] == "apps")


def _is_true(condition: JsonObject | None) -> bool:
    return condition is not None and condition.get("status") == "True"


def _status(value: JsonObject) -> JsonObject:
    return object_or_empty(value.get("status"))


def _number(value: JsonObject, key: str, default: int = 0) -> int:
    number = value.get(key)
    return number if isinstance(number, int) else default


_RULES: Final[Mapping[tuple[str, str], Callable[[JsonObject], Readiness]]] = {
    ("apps", "Deployment"): _check_deployment,
    ("apps", "StatefulSet"): _check_stateful_set,
    ("apps", "DaemonSet"): _check_daemon_set,
    ("batch", "Job"): _check_job,
    ("", "PersistentVolumeClaim"): _check_claim,
    ("", "Service"): _check_service,
    ("", "Pod"): _check_pod,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): _check_established,
    ("apiregistration.k8s.io", "APIService"): _check_available,
}
_EXISTING: Final = frozenset(
    {
        *(
            ("", kind)
            for kind in (
                "ConfigMap",
                "Endpoints",
                "LimitRange",
                "Namespace",
                "PersistentVolume",
                "ResourceQuota",
                "Secret",
                "ServiceAccount",
            )
        ),
        ("apps", "ControllerRevision"),
        ("autoscaling", "HorizontalPodAutoscaler"),
        ("batch", "CronJob"),
        ("discovery.k8s.io", "EndpointSlice"),
        ("networking.k8s.io", "Ingress"),
        ("networking.k8s.io", "IngressClass"),
        ("networking.k8s.io", "NetworkPolicy"),
        ("policy", "PodDisruptionBudget"),
        *(
            ("rbac.authorization.k8s.io", kind)
            for kind in ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
        ),
        ("scheduling.k8s.io", "PriorityClass"),
        ("storage.k8s.io", "StorageClass"),
        ("node.k8s.io", "RuntimeClass"),
        *(
            ("admissionregistration.k8s.io", kind)
            for kind in (
                "ValidatingWebhookConfiguration",
                "MutatingWebhookConfiguration",
                "ValidatingAdmissionPolicy",
                "ValidatingAdmissionPolicyBinding",
            )
        ),
    }
)
