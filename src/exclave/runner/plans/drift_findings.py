"""Findings of a scan for drift: what differs, one entry per field, comparable from scan to scan."""

import hashlib
import json
from collections.abc import Iterator
from typing import Final

from exclave.wire.jobs import JsonValue
from exclave.wire.plans import PlanAttribute, PlanDocument, PlannedResource

_QUIET: Final = frozenset({"no-op", "read", "keep", "run"})
_MOST: Final = 200
_LONGEST: Final = 200
_HIDDEN: Final = "(sensitive)"


def list_findings(document: PlanDocument) -> JsonValue:
    """Return what a plan of the deployed content would change back, and how much was left out."""
    findings = list(_find_all(document))
    return {"findings": findings[:_MOST], "more": max(0, len(findings) - _MOST)}


def _find_all(document: PlanDocument) -> Iterator[JsonValue]:
    for resource in document.resources:
        if resource.action not in _QUIET:
            yield from _find_in(resource)
    for output in document.outputs:
        if output.action != "no-op":
            values = (None, None) if output.sensitive else (output.before, output.after)
            yield _write(
                f"output.{output.name}", "", output.action, *values, hidden=output.sensitive
            )


def _find_in(resource: PlannedResource) -> Iterator[JsonValue]:
    attributes = [entry for entry in resource.attributes if not entry.ignored]
    if resource.action != "update" or not attributes:
        yield _write(resource.address, "", resource.action, None, None, hidden=False)
        return
    for entry in attributes:
        values = (None, None) if entry.sensitive else (entry.before, _read_after(entry))
        yield _write(resource.address, entry.path, resource.action, *values, hidden=entry.sensitive)


def _read_after(entry: PlanAttribute) -> JsonValue:
    return "(known after apply)" if entry.unknown else entry.after


def _write(
    address: str, path: str, change: str, before: JsonValue, after: JsonValue, *, hidden: bool
) -> JsonValue:
    content = json.dumps([before, after], sort_keys=True, ensure_ascii=False)
    detail = "" if (before, after) == (None, None) else f"{_show(before)} → {_show(after)}"
    return {
        "address": address,
        "path": path[: 2 * _LONGEST],
        "change": change,
        "detail": _HIDDEN if hidden else detail,
        "content": hashlib.sha256(content.encode()).hexdigest(),
    }


def _show(value: JsonValue) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
