"""Values that planning and applying share: wanted objects, and what happens to each object."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from exclave.base.json_values import JsonObject
from exclave.runner.kube.api.objects import ObjectId
from exclave.runner.kube.changes.fields import FieldChange

Action = Literal["create", "update", "replace", "delete", "keep", "no-op"]


class WantedObject(NamedTuple):
    """An object as it is to be applied: in its namespace, with the marks of its owner."""

    id: ObjectId
    value: JsonObject


class TakenPath(NamedTuple):
    """A field that the change takes over, and from whom."""

    path: str
    manager: str


@dataclass(frozen=True, slots=True)
class ObjectChange:
    """What happens to one object."""

    id: ObjectId
    action: Action
    fields: Sequence[FieldChange] = ()
    live: JsonObject | None = field(default=None, repr=False)
    """The object as it was found; None if there was none."""
    after: JsonObject | None = field(default=None, repr=False)
    """The object as the server would store it; None if it is not known or removed."""
    taken: Sequence[TakenPath] = ()
    force: bool = False
    """Whether the change overrules other managers, which `taken` names."""
    forcing: Sequence[str] = ()
    """Fields because of which the object is replaced."""
    notes: Sequence[str] = ()
    refusal: str = ""
    """Why the object cannot be applied; empty if it can."""
