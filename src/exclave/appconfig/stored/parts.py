"""The stored form of an app: its parts, an outline for planning, and the digest of both."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from exclave.appconfig.model.app import Entry
from exclave.appconfig.model.kinds.actions import Action
from exclave.appconfig.model.kinds.components import Component
from exclave.appconfig.model.kinds.inputs import InputGroup
from exclave.appconfig.read_app import CheckedApp
from exclave.appconfig.stored.freezing import freeze
from exclave.base.digests import digest_json
from exclave.base.json_values import Json, JsonObject

_SECTIONS: Final[Mapping[str, str]] = {
    "inputs": "input", "secrets": "secret", "permissions": "permission",
    "named_policies": "named_policy", "policies": "policy", "operation_roles": "role_rule",
    "kubernetes_contexts": "kubernetes_context", "components": "component", "actions": "action",
    "runbooks": "runbook", "branches": "branch", "triggers": "trigger",
}  # fmt: skip
"""The name of a part of each section that has several parts; other sections are one part."""
_LEFT_OUT: Final = frozenset({"installs"})
"""Install configs are not part of the app; `installs sync` reads them."""
_ORDERED: Final = frozenset({"input", "input_group", "role_rule", "policy"})
"""Sections whose order people see, or which is a rule."""


@dataclass(frozen=True, slots=True)
class FrozenPart:
    """One part of an app."""

    section: str
    name: str
    """Unique in its section; empty for sections with a single part."""
    hash: str
    value: JsonObject


@dataclass(frozen=True, slots=True)
class FrozenApp:
    """An app directory, ready to be stored."""

    parts: tuple[FrozenPart, ...]
    outline: JsonObject
    digest: str
    """The digest of the content, independent of file names."""
    folders: Mapping[str, str]
    """The digest of each folder of the app's directory, by path; also in the outline."""


def freeze_app(checked: CheckedApp) -> FrozenApp:
    """Return the stored form of an app that has no errors."""
    parts = _freeze_parts(checked)
    return FrozenApp(parts, _outline(checked), _digest(parts), checked.folders)


def _freeze_parts(checked: CheckedApp) -> tuple[FrozenPart, ...]:
    names: set[tuple[str, str]] = set()
    parts = []
    for entry in checked.app.entries:
        if entry.section in _LEFT_OUT:
            continue
        section = "input_group" if isinstance(entry.value, InputGroup) else entry.section
        section = _SECTIONS.get(section, section)
        name = _choose_name(names, section, entry)
        names.add((section, name))
        parts.append(FrozenPart(section, name, checked.hash_of(entry.value), freeze(entry.value)))
    return tuple(parts)


def _choose_name(names: set[tuple[str, str]], section: str, entry: Entry) -> str:
    """Return the name of a part; parts without one are numbered."""
    if entry.section not in _SECTIONS and section not in {"input_group", "break_glass"}:
        return ""
    if entry.name and (section, entry.name) not in names:
        return entry.name
    number = 1
    while (section, f"{entry.name}#{number}") in names:
        number += 1
    return f"{entry.name}#{number}"


def _digest(parts: Sequence[FrozenPart]) -> str:
    ordered = [[part.section, part.name, part.hash] for part in parts if part.section in _ORDERED]
    others = sorted(
        [part.section, part.name, part.hash] for part in parts if part.section not in _ORDERED
    )
    return digest_json([ordered, others])


def _outline(checked: CheckedApp) -> dict[str, Json]:
    app, graph = checked.app, checked.graph
    sandbox = app.sandbox
    return {
        "components": [_outline_component(checked, component) for component in app.components],
        "order": [list(names) for names in graph.groups()],
        "sandbox": None
        if sandbox is None
        else {
            "inputs": sorted(graph.sandbox_inputs),
            "hash": checked.hash_of(sandbox),
        },
        "actions": [_outline_action(action) for action in app.actions],
        "runbooks": [runbook.name for runbook in app.runbooks],
        "inputs": [variable.name for variable in app.inputs],
        "secrets": [secret.name for secret in app.secrets],
        "cloud": app.cloud,
        "folders": dict(checked.folders),
    }


def _outline_component(checked: CheckedApp, component: Component) -> dict[str, Json]:
    name = component.name
    return {
        "name": name,
        "type": component.type,
        "needs": list(checked.graph.needs[name]),
        "hash": checked.hashes[name],
        "inputs": sorted(checked.graph.inputs.get(name, ())),
        "toggleable": component.toggleable,
        "default_enabled": component.default_enabled,
    }


def _outline_action(action: Action) -> dict[str, Json]:
    triggers = [
        {
            "type": trigger.type,
            "component": trigger.component_name,
            "cron": trigger.cron_schedule,
            "index": trigger.index,
        }
        for trigger in action.triggers
    ]
    return {"name": action.name, "triggers": triggers}
