"""The readable document of a plan: what changes and how, without secrets."""

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from exclave.base.json_values import Json
from exclave.runner.logs.masking import Mask
from exclave.runner.plans.shown_values import MOST_ATTRIBUTES, mask_value, write_path
from exclave.runner.terraform.saved_plan import Change, ResourceChange, SavedPlan
from exclave.runner.terraform.state_document import follow
from exclave.wire.plans import (
    PlanAction,
    PlanAttribute,
    PlanDocument,
    PlannedOutput,
    PlannedResource,
    PlanSummary,
)

_QUIET = frozenset({"no-op"})


def describe_plan(plan: SavedPlan, mask: Mask, *, tool: str, destroy: bool) -> PlanDocument:
    """Describe a saved plan; resources that do not change are left out."""
    resources = _describe_all(plan.resources, mask)
    drift = _describe_all(plan.drift, mask)
    outputs = list(_describe_outputs(plan.outputs, mask))
    return PlanDocument(
        destroy=destroy,
        tool=tool,
        resources=resources,
        outputs=outputs,
        drift=drift,
        summary=_count(resources, outputs),
    )


def is_noop(document: PlanDocument) -> bool:
    """Return whether applying the plan would change nothing."""
    return not document.outputs and all(
        resource.action == "read" for resource in document.resources
    )


def read_action(change: Change) -> PlanAction:
    """Name what happens to a resource."""
    match change.actions:
        case ("create",) | ("update",) | ("delete",) | ("read",) | ("forget",):
            return cast("PlanAction", change.actions[0])
        case ("no-op",):
            return "import" if change.is_import else "no-op"
        case _:
            return "replace"


def _describe_all(changes: Sequence[ResourceChange], mask: Mask) -> list[PlannedResource]:
    described = (_describe_resource(change, mask) for change in changes)
    return [resource for resource in described if resource.action not in _QUIET]


def _describe_resource(resource: ResourceChange, mask: Mask) -> PlannedResource:
    action = read_action(resource.change)
    if action == "no-op" and resource.previous:
        action = "move"
    return PlannedResource(
        address=mask(resource.address),
        type=resource.type,
        name=mask(resource.name),
        module=mask(resource.module),
        action=action,
        reason=resource.reason,
        previous=mask(resource.previous),
        import_id=mask(resource.change.import_id),
        attributes=_compare(resource.change, action, mask),
    )


def _compare(change: Change, action: str, mask: Mask) -> list[PlanAttribute]:
    if action in {"read", "move", "forget"}:
        return []
    walk = _Walk(change, mask)
    attributes: list[PlanAttribute] = []
    for attribute in walk.list_changes():
        attributes.append(attribute)
        if len(attributes) >= MOST_ATTRIBUTES:
            break
    return attributes


class _Walk:
    """Compares values before and after, with Terraform's marks for sensitive and unknown ones."""

    def __init__(self, change: Change, mask: Mask) -> None:
        self._change = change
        self._mask = mask
        self._forcing = {write_path(path) for path in change.replace_paths}

    def list_changes(self) -> Iterator[PlanAttribute]:
        given = self._change
        yield from self._walk(
            (),
            given.before,
            given.after,
            given.after_unknown,
            (given.before_sensitive, given.after_sensitive),
        )

    def _walk(
        self,
        path: tuple[str | int, ...],
        before: Json,
        after: Json,
        unknown: Json,
        hidden: tuple[Json, Json],
    ) -> Iterator[PlanAttribute]:
        if unknown is not True and before == after and not _has_true(unknown):
            return
        if hidden[0] is True or hidden[1] is True:
            yield self._describe(path, None, None, sensitive=True, unknown=unknown is True)
        elif unknown is True:
            yield from self._describe_unknown(path, before, hidden[0])
        elif _is_walkable(before, after):
            for key in _list_keys(before, after, unknown):
                yield from self._walk(
                    (*path, key),
                    _get(before, key),
                    _get(after, key),
                    _get(unknown, key),
                    (_get(hidden[0], key), _get(hidden[1], key)),
                )
        elif _has_true(hidden[0]) or _has_true(hidden[1]):
            yield self._describe(path, None, None, sensitive=True)
        else:
            yield self._describe(path, before, after)

    def _describe_unknown(
        self, path: tuple[str | int, ...], before: Json, hidden: Json
    ) -> Iterator[PlanAttribute]:
        secret = _has_true(hidden)
        yield self._describe(path, None if secret else before, None, sensitive=secret, unknown=True)

    def _describe(
        self,
        path: tuple[str | int, ...],
        before: Json,
        after: Json,
        *,
        sensitive: bool = False,
        unknown: bool = False,
    ) -> PlanAttribute:
        written = write_path(path)
        return PlanAttribute(
            path=self._mask(written),
            before=mask_value(before, self._mask),
            after=mask_value(after, self._mask),
            sensitive=sensitive,
            unknown=unknown,
            forces_replacement=any(
                written == prefix or written.startswith((f"{prefix}.", f"{prefix}["))
                for prefix in self._forcing
            ),
        )


def _describe_outputs(changes: Mapping[str, Change], mask: Mask) -> Iterator[PlannedOutput]:
    for name, change in sorted(changes.items()):
        action = read_action(change)
        if action == "no-op":
            continue
        hidden = _has_true(change.before_sensitive) or _has_true(change.after_sensitive)
        yield PlannedOutput(
            name=name,
            action=action,
            before=None if hidden else mask_value(change.before, mask),
            after=None if hidden else mask_value(change.after, mask),
            sensitive=hidden,
            unknown=_has_true(change.after_unknown),
        )


def _count(resources: Sequence[PlannedResource], outputs: Sequence[PlannedOutput]) -> PlanSummary:
    def count(*actions: str) -> int:
        return sum(1 for resource in resources if resource.action in actions)

    return PlanSummary(
        add=count("create"),
        change=count("update"),
        replace=count("replace"),
        destroy=count("delete"),
        imported=sum(
            1 for resource in resources if resource.import_id or resource.action == "import"
        ),
        move=sum(1 for resource in resources if resource.previous),
        outputs=len(outputs),
    )


def _is_walkable(before: Json, after: Json) -> bool:
    kinds = {type(value) for value in (before, after) if value is not None}
    return kinds in ({dict}, {list}) and bool(before or after)


def _list_keys(before: Json, after: Json, unknown: Json) -> list[str] | list[int]:
    values = (before, after, unknown)
    if isinstance(before, list) or isinstance(after, list):
        return list(range(max(len(value) for value in values if isinstance(value, list))))
    return sorted({key for value in values if isinstance(value, dict) for key in value})


def _get(value: Json, key: str | int) -> Json:
    """Return a part of a value; of one that is marked as a whole, the mark."""
    return True if value is True else follow(value, (key,))


def _has_true(value: Json) -> bool:
    match value:
        case bool():
            return value
        case dict():
            return any(_has_true(part) for part in value.values())
        case list():
            return any(_has_true(part) for part in value)
        case _:
            return False
