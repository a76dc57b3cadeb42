"""Who owns an object: the marks that the objects of a part carry, and those of somebody else."""

from dataclasses import dataclass
from typing import Final, Protocol

from exclave.base.json_values import Json, JsonObject, object_or_empty, text_or_empty

MANAGER: Final = "exclave"
PART_ANNOTATION: Final = "exclave.dev/part"
PRUNE_ANNOTATION: Final = "exclave.dev/prune"
MANAGED_BY: Final = "app.kubernetes.io/managed-by"


class Owner(Protocol):
    """What marks objects as those of one part, and recognises the objects of others."""

    @property
    def manager(self) -> str:
        """The field manager under which the part's objects are applied."""
        ...

    def mark(self, value: JsonObject) -> JsonObject:
        """Return an object with the marks of this owner."""
        ...

    def owns(self, live: JsonObject) -> bool:
        """Return whether a live object carries the marks of this owner."""
        ...

    def find_other(self, live: JsonObject) -> str:
        """Return who else owns a live object, for people; empty if nobody does."""
        ...


@dataclass(frozen=True, slots=True)
class PartOwner:
    """A part of an install whose objects are applied by the runner itself."""

    install: str
    part: str
    manager: str = MANAGER

    @property
    def name(self) -> str:
        """The part as it is written on each object."""
        return f"{self.install}/{self.part}"

    def mark(self, value: JsonObject) -> JsonObject:
        """Return an object with the annotation of the part, and a label if it has none."""
        metadata = object_or_empty(value.get("metadata"))
        labels = {MANAGED_BY: MANAGER, **object_or_empty(metadata.get("labels"))}
        annotations = {**object_or_empty(metadata.get("annotations")), PART_ANNOTATION: self.name}
        marked: dict[str, Json] = {**metadata, "labels": labels, "annotations": annotations}
        return {**value, "metadata": marked}

    def owns(self, live: JsonObject) -> bool:
        """Return whether a live object carries the annotation of the part."""
        return read_annotation(live, PART_ANNOTATION) == self.name

    def find_other(self, live: JsonObject) -> str:
        """Return the other part that a live object belongs to; empty if there is none."""
        part = read_annotation(live, PART_ANNOTATION)
        return "" if part in {"", self.name} else f"the part `{part}`"


def read_annotation(value: JsonObject, name: str) -> str:
    """Return an annotation of an object; empty if it has none of this name."""
    metadata = object_or_empty(value.get("metadata"))
    return text_or_empty(object_or_empty(metadata.get("annotations")).get(name))


def read_uid(value: JsonObject) -> str:
    """Return what tells a live object from one that was recreated under the same name."""
    return text_or_empty(object_or_empty(value.get("metadata")).get("uid"))


def is_ending(live: JsonObject) -> bool:
    """Return whether a live object was asked to go and waits for its finalizers."""
    return bool(object_or_empty(live.get("metadata")).get("deletionTimestamp"))
