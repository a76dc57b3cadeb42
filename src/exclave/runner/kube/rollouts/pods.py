"""Which pods of a workload count: those of its newest version."""

from collections.abc import Sequence

from exclave.base.json_values import JsonObject, list_or_empty, object_or_empty, text_or_empty

_REVISION = "deployment.kubernetes.io/revision"
_POD_HASH = "pod-template-hash"
_CONTROLLER_HASH = "controller-revision-hash"


def write_selector(workload: JsonObject) -> str:
    """Return the selector of a workload's pods as a query; empty if it has none."""
    spec = object_or_empty(workload.get("spec"))
    selector = object_or_empty(spec.get("selector"))
    labels = object_or_empty(selector.get("matchLabels"))
    terms = [f"{name}={text_or_empty(value)}" for name, value in sorted(labels.items())]
    terms += [_write_term(object_or_empty(entry)) for entry in _list_expressions(selector)]
    return ",".join(terms)


def select_current(
    workload: JsonObject, pods: Sequence[JsonObject], replica_sets: Sequence[JsonObject]
) -> list[JsonObject]:
    """Return the pods of the newest ReplicaSet or revision, the newest pod first."""
    label, value = _find_current(workload, replica_sets)
    chosen = [pod for pod in pods if not value or _labels(pod).get(label) == value]
    return sorted(chosen, key=_read_age, reverse=True)


def _find_current(workload: JsonObject, replica_sets: Sequence[JsonObject]) -> tuple[str, str]:
    """Return the label that the newest pods have, and its value; empty if it is not known."""
    if workload.get("kind") == "Deployment":
        uid = object_or_empty(workload.get("metadata")).get("uid")
        own = [entry for entry in replica_sets if uid in _list_owners(entry)]
        newest = max(own, key=_read_revision, default=None)
        labels = {} if newest is None else _labels(newest)
        return _POD_HASH, text_or_empty(labels.get(_POD_HASH))
    status = object_or_empty(workload.get("status"))
    revision = text_or_empty(status.get("updateRevision"))
    return _CONTROLLER_HASH, revision


def _read_revision(replica_set: JsonObject) -> int:
    metadata = object_or_empty(replica_set.get("metadata"))
    text = text_or_empty(object_or_empty(metadata.get("annotations")).get(_REVISION))
    return int(text) if text.isdecimal() else 0


def _list_owners(value: JsonObject) -> set[str]:
    references = list_or_empty(object_or_empty(value.get("metadata")).get("ownerReferences"))
    return {text_or_empty(object_or_empty(entry).get("uid")) for entry in references}


def _labels(value: JsonObject) -> JsonObject:
    return object_or_empty(object_or_empty(value.get("metadata")).get("labels"))


def _read_age(pod: JsonObject) -> str:
    return text_or_empty(object_or_empty(pod.get("metadata")).get("creationTimestamp"))


def _list_expressions(selector: JsonObject) -> Sequence[JsonObject]:
    return [object_or_empty(entry) for entry in list_or_empty(selector.get("matchExpressions"))]


def _write_term(expression: JsonObject) -> str:
    key = text_or_empty(expression.get("key"))
    values = ",".join(text_or_empty(entry) for entry in list_or_empty(expression.get("values")))
    return {
        "In": f"{key} in ({values})",
        "NotIn": f"{key} notin ({values})",
        "Exists": key,
        "DoesNotExist": f"!{key}",
    }.get(text_or_empty(expression.get("operator")), key)
