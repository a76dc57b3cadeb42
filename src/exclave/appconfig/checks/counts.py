"""Limits on the number of things in an app, so that every list a tenant controls is bounded."""

from collections.abc import Iterator, Mapping

from exclave.appconfig.diagnostics.codes import Code
from exclave.appconfig.diagnostics.report import Place, Report
from exclave.appconfig.model.app import App
from exclave.appconfig.model.fields import Table
from exclave.appconfig.model.kinds.actions import Action
from exclave.appconfig.model.kinds.branches import Branch
from exclave.appconfig.model.kinds.components import Component
from exclave.appconfig.model.kinds.inputs import Input, InputGroup
from exclave.appconfig.model.kinds.kubernetes_contexts import KubernetesContext
from exclave.appconfig.model.kinds.permissions import NamedPolicy, Role
from exclave.appconfig.model.kinds.policies import Policy
from exclave.appconfig.model.kinds.runbooks import Runbook
from exclave.appconfig.model.kinds.secrets import Secret
from exclave.appconfig.model.kinds.triggers import EventRule

OF_A_KIND: Mapping[type[Table], int] = {
    Component: 200, Action: 200, Runbook: 100, Policy: 100, NamedPolicy: 200, Role: 100,
    Input: 500, InputGroup: 100, Secret: 200, KubernetesContext: 50, Branch: 100, EventRule: 100,
}  # fmt: skip
IN_A_KEY: Mapping[str, int] = {
    "labels": 32, "default_labels": 32, "label_selector": 32, "label_colors": 100,
    "vars": 500, "var_file": 50, "env_vars": 150, "values": 500, "values_file": 50,
    "steps": 100, "triggers": 50, "dependencies": 200,
}  # fmt: skip
"""The maximum number of elements of a list or a map, by its key."""
IN_OTHER_KEYS = 500
HOOKS = 500
"""Triggers of all actions together."""


def check(app: App, report: Report) -> None:
    """Report sections and lists that exceed their limit."""
    for model, most in OF_A_KIND.items():
        entries = app.entries_of(model)
        if len(entries) > most:
            noun = entries[most].section.replace("_", " ")
            _refuse(report, entries[most].place, f"the app has {len(entries)} {noun}", most)
    hooks = 0
    for entry in app.entries:
        for place, key, count in _count(entry.value, entry.place):
            most = IN_A_KEY.get(key, IN_OTHER_KEYS)
            if count > most:
                _refuse(report, place, f"`{key}` has {count} elements", most)
        if isinstance(entry.value, Action):
            hooks += len(entry.value.triggers)
            if hooks > HOOKS >= hooks - len(entry.value.triggers):
                place = entry.place.child("triggers")
                _refuse(report, place, f"the actions have more than {HOOKS} triggers", HOOKS)


def _count(table: Table, place: Place) -> Iterator[tuple[Place, str, int]]:
    for key, field in table.FIELDS.items():
        value = getattr(table, field.attribute)
        if not isinstance(value, Mapping | tuple):
            continue
        yield place.child(key), key, len(value)
        inner = value.items() if isinstance(value, Mapping) else enumerate(value)
        for at, element in inner:
            if isinstance(element, Table):
                yield from _count(element, place.child(key, at))


def _refuse(report: Report, place: Place, what: str, most: int) -> None:
    hint = "Split the app, or build the rest from what it is made of."
    report.error(Code.TOO_MANY, place, f"{what}; at most {most} are possible", hint)
