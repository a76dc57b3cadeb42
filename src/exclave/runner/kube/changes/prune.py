"""Which objects of the state are removed because the plan does not have them any more."""

from typing import Literal, NamedTuple

from exclave.base.json_values import JsonObject, list_or_empty, object_or_empty, text_or_empty
from exclave.runner.kube.changes.ownership import (
    PRUNE_ANNOTATION,
    Owner,
    read_annotation,
    read_uid,
)
from exclave.runner.kube.changes.state import StateObject

KEEP_ANNOTATION = "helm.sh/resource-policy"


class PruneDecision(NamedTuple):
    """What happens to an object that is no longer wanted, and why."""

    action: Literal["delete", "keep", "forget"]
    """`forget`: it is gone, or is not ours any more; it only leaves the state."""
    note: str = ""


def decide_prune(known: StateObject, live: JsonObject | None, owner: Owner) -> PruneDecision:
    """Decide about an object that the state has and the plan has not."""
    if live is None:
        return PruneDecision("forget")
    if known.uid and known.uid != read_uid(live):
        return PruneDecision("forget", "somebody recreated it since: it is not ours")
    if not owner.owns(live):
        return PruneDecision("forget", "it does not carry our mark any more")
    return find_reason_to_keep(live) or PruneDecision("delete", describe_finalizers(live))


def find_reason_to_keep(live: JsonObject) -> PruneDecision | None:
    """Return the decision for an object whose annotations say that it stays."""
    if read_annotation(live, PRUNE_ANNOTATION) == "false":
        return PruneDecision("keep", f"it is annotated `{PRUNE_ANNOTATION}: false`")
    if read_annotation(live, KEEP_ANNOTATION) == "keep":
        return PruneDecision("keep", f"it is annotated `{KEEP_ANNOTATION}: keep`")
    return None


def list_finalizers(live: JsonObject) -> list[str]:
    """Return what an object waits for before it is gone."""
    metadata = object_or_empty(live.get("metadata"))
    return [text_or_empty(name) for name in list_or_empty(metadata.get("finalizers"))]


def describe_finalizers(live: JsonObject) -> str:
    """Return a sentence about the finalizers of an object; empty if it has none."""
    names = list_finalizers(live)
    if not names:
        return ""
    return f"it stays until {', '.join(f'`{name}`' for name in names)} releases it"
