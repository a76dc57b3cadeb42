"""The readable document of a plan: what changes and how, without secrets."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from exclave.runner.logs.masking import Mask, mask_number
from exclave.wire.jobs import JsonValue
from exclave.wire.terraform import (
    PlanAction,
    PlanAttribute,
    PlanDocument,
    PlannedOutput,
    PlannedResource,
    PlanSummary,
)

Change = Mapping[str, Any]

_MOST_ATTRIBUTES = 500
_MOST_CHARS = 4000
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_QUIET = frozenset({"no-op"})


def describe_plan(plan: Mapping[str, Any], mask: Mask, *, tool: str, destroy: bool) -> PlanDocument:
    """Return the document of a saved plan's JSON, without unchanged resources."""
    resources = _describe_all(plan.get("resource_changes"), mask)
    drift = _describe_all(plan.get("resource_drift"), mask)
    outputs = list(_describe_outputs(plan.get("output_changes"), mask))
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
    """Return the name of the action on a resource."""
    actions = tuple(change.get("actions") or ("no-op",))
    match actions:
        case ("create",) | ("update",) | ("delete",) | ("read",) | ("forget",):
            return cast("PlanAction", actions[0])
        case ("no-op",):
            return "import" if change.get("importing") else "no-op"
        case _:
            return "replace"


def _describe_all(changes: object, mask: Mask) -> list[PlannedResource]:
    given = changes if isinstance(changes, list) else []
    described = (_describe_resource(change, mask) for change in given)
    return [change for change in described if change.action not in _QUIET]


def _describe_resource(told: Mapping[str, Any], mask: Mask) -> PlannedResource:
    change: Change = told.get("change") or {}
    action = read_action(change)
    previous = str(told.get("previous_address") or "")
    if action == "no-op" and previous:
        action = "move"
    importing = change.get("importing") or {}
    return PlannedResource(
        address=mask(str(told.get("address", ""))),
        type=str(told.get("type", "")),
        name=mask(str(told.get("name", ""))),
        module=mask(str(told.get("module_address") or "")),
        action=action,
        reason=str(told.get("action_reason") or ""),
        previous=mask(previous),
        import_id=mask(str(importing.get("id") or "")),
        attributes=_compare(change, action, mask),
    )


def _compare(change: Change, action: str, mask: Mask) -> list[PlanAttribute]:
    if action in {"read", "move", "forget"}:
        return []
    walk = _Walk(change, mask)
    attributes: list[PlanAttribute] = []
    for attribute in walk.list_changes():
        attributes.append(attribute)
        if len(attributes) >= _MOST_ATTRIBUTES:
            break
    return attributes


class _Walk:
    """Compares values before and after, with Terraform's marks for sensitive and unknown ones."""

    def __init__(self, change: Change, mask: Mask) -> None:
        self._change = change
        self._mask = mask
        paths = change.get("replace_paths") or ()
        self._forcing = {_write_path(path) for path in paths if isinstance(path, list)}

    def list_changes(self) -> Iterator[PlanAttribute]:
        given = self._change
        yield from self._walk(
            (),
            given.get("before"),
            given.get("after"),
            given.get("after_unknown"),
            (given.get("before_sensitive"), given.get("after_sensitive")),
        )

    def _walk(
        self,
        path: tuple[str | int, ...],
        before: Any,
        after: Any,
        unknown: Any,
        hidden: tuple[Any, Any],
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
        self, path: tuple[str | int, ...], before: Any, hidden: Any
    ) -> Iterator[PlanAttribute]:
        secret = _has_true(hidden)
        yield self._describe(path, None if secret else before, None, sensitive=secret, unknown=True)

    def _describe(
        self,
        path: tuple[str | int, ...],
        before: Any,
        after: Any,
        *,
        sensitive: bool = False,
        unknown: bool = False,
    ) -> PlanAttribute:
        written = _write_path(path)
        return PlanAttribute(
            path=self._mask(written),
            before=mask_value(before, self._mask),
            after=mask_value(after, self._mask),
            sensitive=sensitive,
            unknown=unknown,
            forces_replacement=any(
                written == one or written.startswith((f"{one}.", f"{one}["))
                for one in self._forcing
            ),
        )


def mask_value(value: Any, mask: Mask) -> JsonValue:
    """Return a value with its secrets masked and long texts shortened."""
    match value:
        case str():
            text = mask(value)
            cut = len(text) - _MOST_CHARS
            return text if cut <= 0 else f"{text[:_MOST_CHARS]}… ({cut} more characters)"
        case dict():
            return {mask(str(key)): mask_value(part, mask) for key, part in value.items()}
        case list():
            return [mask_value(part, mask) for part in value]
        case bool() | None:
            return value
        case _:
            return mask_number(value, mask)


def _describe_outputs(changes: object, mask: Mask) -> Iterator[PlannedOutput]:
    for name, change in sorted(changes.items()) if isinstance(changes, dict) else ():
        action = read_action(change)
        if action == "no-op":
            continue
        hidden = _has_true(change.get("before_sensitive")) or _has_true(
            change.get("after_sensitive")
        )
        yield PlannedOutput(
            name=name,
            action=action,
            before=None if hidden else mask_value(change.get("before"), mask),
            after=None if hidden else mask_value(change.get("after"), mask),
            sensitive=hidden,
            unknown=_has_true(change.get("after_unknown")),
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


def _is_walkable(before: Any, after: Any) -> bool:
    kinds = {type(value) for value in (before, after) if value is not None}
    return kinds in ({dict}, {list}) and bool(before or after)


def _list_keys(before: Any, after: Any, unknown: Any) -> list[Any]:
    if isinstance(before, list) or isinstance(after, list):
        sizes = [len(one) for one in (before, after, unknown) if isinstance(one, list)]
        return list(range(max(sizes)))
    keys = {key for one in (before, after, unknown) if isinstance(one, dict) for key in one}
    return sorted(keys)


def _get(value: Any, key: Any) -> Any:
    if value is True:
        return True
    try:
        return value[key]
    except (KeyError, IndexError, TypeError):
        return None


def _has_true(value: Any) -> bool:
    match value:
        case bool():
            return value
        case dict():
            return any(_has_true(part) for part in value.values())
        case list():
            return any(_has_true(part) for part in value)
        case _:
            return False


def _write_path(path: Sequence[str | int]) -> str:
    text = ""
    for key in path:
        if isinstance(key, str) and _PLAIN_KEY.fullmatch(key):
            text += f".{key}" if text else key
        else:
            text += f"[{json.dumps(key, ensure_ascii=False)}]"
    return text
