"""Rendering of every templated field of an app for a given state."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from exclave.appconfig.diagnostics.positions import KeyPath
from exclave.appconfig.model.app import App, Entry
from exclave.appconfig.model.kinds.runbooks import Runbook
from exclave.appconfig.templates import ROOT, RUNBOOK_ROOTS, Fault, is_template, render_text
from exclave.appconfig.uses import locate


@dataclass(frozen=True, slots=True)
class Rendered:
    """A rendered field: its value, or why it is unknown."""

    owner: str
    """`components.api`, `sandbox`."""
    field: str
    file: str
    line: int
    template: str
    value: str | None
    unknown: str = ""
    hint: str = ""


def render_app(
    app: App, state: Mapping[str, object], now: datetime | None = None
) -> Iterator[Rendered]:
    """Yield every template, rendered; without `now`, fields that read the time are unknown."""
    values = complete_state(app, state)
    for entry in app.entries:
        roots = (ROOT, *RUNBOOK_ROOTS) if isinstance(entry.value, Runbook) else (ROOT,)
        given = {root: values[root] for root in roots if root in values}
        if isinstance(entry.value, Runbook):
            given |= _complete_run(entry.value, values)
        for text in entry.texts:
            if not text.is_rendered or not is_template(text.content, roots):
                continue
            done = render_text(text.content, given, now)
            fault = done if isinstance(done, Fault) else None
            place = text.place if fault is None else locate(text, fault.position)
            yield Rendered(
                owner=_name(entry),
                field=_show(text.at),
                file=place.source.path,
                line=place.find().line,
                template=text.content,
                value=done if isinstance(done, str) else None,
                unknown=fault.message if fault else "",
                hint=fault.hint if fault else "",
            )


def complete_state(app: App, state: Mapping[str, object]) -> dict[str, object]:
    """Return a state (given with or without its root key) with the defaults of inputs filled in."""
    whole = dict(state) if ROOT in state else {ROOT: dict(state)}
    tree = _table(whole[ROOT])
    defaults = {
        declared.name: declared.default for declared in app.inputs if declared.default is not None
    }
    inputs, install = _table(tree.get("inputs")), _table(tree.get("install"))
    given = {**defaults, **_table(install.get("inputs")), **_table(inputs.get("inputs"))}
    if given:
        tree |= {"inputs": {**inputs, "inputs": given}, "install": {**install, "inputs": given}}
    return {**whole, ROOT: {"app": {"name": app.name}, **tree}}


def _complete_run(runbook: Runbook, values: Mapping[str, object]) -> dict[str, object]:
    """Return the state of a runbook run: the given values and the defaults of its inputs."""
    defaults = {
        declared.name: declared.default
        for declared in runbook.input
        if declared.default is not None
    }
    inputs, outputs = RUNBOOK_ROOTS
    return {inputs: defaults | _table(values.get(inputs)), outputs: _table(values.get(outputs))}


def _table(value: object) -> dict[str, object]:
    return (
        {str(key): element for key, element in value.items()} if isinstance(value, Mapping) else {}
    )


def _name(entry: Entry) -> str:
    return f"{entry.section}.{entry.name}" if entry.name else entry.section


def _show(at: KeyPath) -> str:
    shown = ""
    for key in at:
        shown += f"[{key}]" if isinstance(key, int) else f".{key}" if shown else key
    return shown
