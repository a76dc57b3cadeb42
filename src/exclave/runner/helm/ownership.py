"""The marks of Helm on objects: which release they belong to."""

from dataclasses import dataclass
from typing import Final

from exclave.base.json_values import Json, JsonObject, object_or_empty
from exclave.runner.kube.changes.ownership import MANAGED_BY, PART_ANNOTATION, read_annotation

RELEASE_ANNOTATION: Final = "meta.helm.sh/release-name"
NAMESPACE_ANNOTATION: Final = "meta.helm.sh/release-namespace"


@dataclass(frozen=True, slots=True)
class ReleaseOwner:
    """A release, as Helm marks its objects."""

    release: str
    namespace: str
    take_ownership: bool = False
    """Whether objects that belong to others, or to nobody, become those of this release."""
    manager: str = "helm"

    def mark(self, value: JsonObject) -> JsonObject:
        """Return an object with the label and the annotations that Helm will give it."""
        metadata = object_or_empty(value.get("metadata"))
        marked: dict[str, Json] = {
            **metadata,
            "labels": {**object_or_empty(metadata.get("labels")), MANAGED_BY: "Helm"},
            "annotations": {
                **object_or_empty(metadata.get("annotations")),
                RELEASE_ANNOTATION: self.release,
                NAMESPACE_ANNOTATION: self.namespace,
            },
        }
        return {**value, "metadata": marked}

    def owns(self, live: JsonObject) -> bool:
        """Return whether a live object carries the annotations of the release."""
        return (
            read_annotation(live, RELEASE_ANNOTATION) == self.release
            and read_annotation(live, NAMESPACE_ANNOTATION) == self.namespace
        )

    def find_other(self, live: JsonObject) -> str:
        """Return who else owns a live object; Helm refuses it unless it may take it over."""
        if self.take_ownership or self.owns(live):
            return ""
        return describe_owner(live) + " (set `take_ownership` to adopt it)"


def describe_owner(live: JsonObject) -> str:
    """Return whose a live object is, for people."""
    release = read_annotation(live, RELEASE_ANNOTATION)
    if release:
        namespace = read_annotation(live, NAMESPACE_ANNOTATION)
        return f"the release `{release}` in the namespace `{namespace}`"
    part = read_annotation(live, PART_ANNOTATION)
    return f"the part `{part}`" if part else "nobody: it was not made by Helm"
