"""Changes of objects as a readable plan: no value of a Secret ever gets into it."""

from collections.abc import Iterable, Iterator, Sequence

from exclave.runner.kube.api.objects import ObjectId
from exclave.runner.kube.changes.fields import FieldChange, FieldPath, write_field_path
from exclave.runner.kube.changes.ignoring import IgnoreRules
from exclave.runner.kube.changes.model import ObjectChange
from exclave.runner.logs.masking import Mask
from exclave.runner.plans.shown_values import MOST_ATTRIBUTES, mask_value
from exclave.wire.plans import PlanAttribute, PlannedResource, PlanSummary, TakenField

_SECRET_FIELDS = frozenset({"data", "stringData"})


def is_sensitive(object_id: ObjectId, path: FieldPath) -> bool:
    """Return whether the values of a field never leave the runner."""
    return (object_id.group, object_id.kind) == ("", "Secret") and path[:1] in {
        (name,) for name in _SECRET_FIELDS
    }


def describe_changes(
    changes: Iterable[ObjectChange], mask: Mask, *, module: str = "", ignore: IgnoreRules
) -> list[PlannedResource]:
    """Return the changes for people; objects that do not change are left out."""
    return [
        describe_change(change, mask, module=module, ignore=ignore)
        for change in changes
        if change.action != "no-op"
    ]


def describe_change(
    change: ObjectChange, mask: Mask, *, module: str, ignore: IgnoreRules
) -> PlannedResource:
    """Return one change for people."""
    shown = change.fields if change.action not in {"delete", "keep"} else ()
    return PlannedResource(
        address=mask(change.id.address),
        type=change.id.type,
        name=mask(change.id.name),
        module=module,
        action=change.action,
        reason="replace_because_cannot_update" if change.action == "replace" else "",
        attributes=list(_describe_fields(change, shown, mask, ignore))[:MOST_ATTRIBUTES],
        taken_from=[
            TakenField(path=mask(taken.path), manager=mask(taken.manager)) for taken in change.taken
        ],
        notes=[mask(note) for note in change.notes],
    )


def count_changes(resources: Sequence[PlannedResource]) -> PlanSummary:
    """Return how many objects are touched, and how."""

    def count(action: str) -> int:
        return sum(1 for resource in resources if resource.action == action)

    return PlanSummary(
        add=count("create"),
        change=count("update"),
        replace=count("replace"),
        destroy=count("delete"),
        keep=count("keep"),
        run=count("run"),
    )


def _describe_fields(
    change: ObjectChange, fields: Sequence[FieldChange], mask: Mask, ignore: IgnoreRules
) -> Iterator[PlanAttribute]:
    for entry in fields:
        hidden = is_sensitive(change.id, entry.path)
        path = write_field_path(entry.path)
        yield PlanAttribute(
            path=mask(path),
            before=None if hidden else mask_value(entry.before, mask),
            after=None if hidden else mask_value(entry.after, mask),
            sensitive=hidden,
            forces_replacement=any(_is_within(path, forcing) for forcing in change.forcing),
            ignored=change.action == "update"
            and ignore.ignores(change.id, entry.path, change.live),
        )


def _is_within(path: str, prefix: str) -> bool:
    return path == prefix or path.startswith((f"{prefix}.", f"{prefix}["))
