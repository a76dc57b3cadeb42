"""The JSON of a saved plan (`terraform show -json`) as values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from exclave.base.json_values import (
    Json,
    JsonObject,
    list_or_empty,
    object_or_empty,
    parse_object,
    require_list,
    require_object,
    require_text,
)
from exclave.runner.terraform.state_document import Output, read_outputs


@dataclass(frozen=True, slots=True)
class Change:
    """What happens to a resource or an output."""

    actions: tuple[str, ...]
    before: Json = None
    after: Json = None
    after_unknown: Json = None
    """True where the value is known only after the apply; nested like the value."""
    before_sensitive: Json = None
    """True where the value is sensitive; nested like the value."""
    after_sensitive: Json = None
    replace_paths: tuple[Sequence[Json], ...] = ()
    """The attributes because of which the resource is replaced."""
    is_import: bool = False
    import_id: str = ""
    """The id of what is imported; empty if nothing is, or it is not known yet."""


@dataclass(frozen=True, slots=True)
class ResourceChange:
    """A resource and what happens to it."""

    address: str
    type: str
    name: str
    change: Change
    module: str = ""
    reason: str = ""
    previous: str = ""
    """Its former address, if it moves."""


@dataclass(frozen=True, slots=True)
class SavedPlan:
    """A saved plan, as far as the runner reads it."""

    resources: tuple[ResourceChange, ...]
    drift: tuple[ResourceChange, ...]
    outputs: Mapping[str, Change]
    planned_outputs: Mapping[str, Output]
    """All outputs with the values that they will have."""


def parse_plan(text: str) -> SavedPlan:
    """Return the plan in a JSON text; `ValueError` if it has another shape.

    A list that is not one is refused: read as empty, it would show a plan without changes.
    """
    document = parse_object(text, "the plan")
    outputs = require_object(document.get("output_changes") or {}, "`output_changes` of the plan")
    planned = object_or_empty(document.get("planned_values"))
    return SavedPlan(
        _read_resources(document, "resource_changes"),
        _read_resources(document, "resource_drift"),
        {name: read_change(change, f"the output `{name}`") for name, change in outputs.items()},
        read_outputs(planned.get("outputs")),
    )


def read_change(value: Json, subject: str) -> Change:
    """Return what happens to the subject; `ValueError` if the change has another shape."""
    change = require_object(value, f"the change of {subject}")
    importing = object_or_empty(change.get("importing"))
    return Change(
        actions=tuple(
            require_text(action, f"an action on {subject}")
            for action in require_list(change.get("actions"), f"`actions` on {subject}")
        ),
        before=change.get("before"),
        after=change.get("after"),
        after_unknown=change.get("after_unknown"),
        before_sensitive=change.get("before_sensitive"),
        after_sensitive=change.get("after_sensitive"),
        replace_paths=tuple(
            require_list(path, f"a path in `replace_paths` of {subject}")
            for path in list_or_empty(change.get("replace_paths"))
        ),
        is_import=bool(importing),
        import_id=str(importing.get("id") or ""),
    )


def _read_resources(document: JsonObject, key: str) -> tuple[ResourceChange, ...]:
    resources = require_list(document.get(key) or (), f"`{key}` of the plan")
    return tuple(
        _read_resource(require_object(resource, f"an entry of `{key}` in the plan"))
        for resource in resources
    )


def _read_resource(resource: JsonObject) -> ResourceChange:
    address = str(resource.get("address", ""))
    return ResourceChange(
        address,
        type=str(resource.get("type", "")),
        name=str(resource.get("name", "")),
        change=read_change(resource.get("change"), f"`{address}`"),
        module=str(resource.get("module_address") or ""),
        reason=str(resource.get("action_reason") or ""),
        previous=str(resource.get("previous_address") or ""),
    )
