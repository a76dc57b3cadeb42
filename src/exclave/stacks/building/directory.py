"""Models of app directories: their findings have a file and a line."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from exclave.appconfig.diagnostics.codes import Severity
from exclave.appconfig.diagnostics.report import Diagnostic, Place, Report
from exclave.appconfig.diagnostics.sources import Source
from exclave.appconfig.model.app import App, Entry
from exclave.appconfig.read_app import CheckedApp
from exclave.appconfig.templates import ROOT, render_text
from exclave.appconfig.uses import find_all, locate
from exclave.stacks.building.example import make_example
from exclave.stacks.building.model import build_model
from exclave.stacks.building.parts import InstallFacts, Render, StackParts, collect_parts
from exclave.stacks.findings import Finding
from exclave.stacks.model import StackModel
from exclave.stacks.registry import CloudStack, find_cloud_stack


@dataclass(frozen=True, slots=True)
class DirectoryModel:
    """The model of an app directory, and all that is wrong with the directory and the Stack."""

    model: StackModel
    diagnostics: tuple[Diagnostic, ...]
    sources: Mapping[str, Source]
    """The files that diagnostics are in."""

    @property
    def is_ok(self) -> bool:
        """Whether files may be rendered of the model."""
        return all(item.severity is not Severity.ERROR for item in self.diagnostics)


def build_from_directory(
    checked: CheckedApp,
    stack: CloudStack,
    install: InstallFacts,
    inputs: Mapping[str, str],
) -> DirectoryModel:
    """Return the model of a directory for a cloud, with the defaults of inputs that have no value.

    What the cloud would refuse is known only for a model without errors.
    """
    app = checked.app
    parts = replace(collect_parts(app, find_all(app, Report())), cloud=str(stack.cloud))
    render = _make_render(parts, install, inputs)
    built = build_model(parts, install, render)
    refused = stack.check(built.model) if built.is_ok else ()
    report = Report()
    for finding in (*built.findings, *refused):
        _report(report, app, finding, render)
    diagnostics = _join(checked.diagnostics, report.diagnostics)
    return DirectoryModel(built.model, diagnostics, {**checked.sources, **report.sources})


def check_stack(checked: CheckedApp) -> CheckedApp:
    """Return a directory with what is wrong with its Stack among its diagnostics, as warnings.

    They are no errors, since an install may give inputs with which they go away.
    """
    stack = find_cloud_stack(checked.app.cloud)
    if stack is None or not checked.ok:
        return checked
    built = build_from_directory(checked, stack, make_example(checked.app.name, stack.cloud), {})
    known = set(checked.diagnostics)
    softened = {
        item if item in known else replace(item, severity=Severity.WARNING)
        for item in built.diagnostics
    }
    diagnostics = Report(diagnostics=softened).sorted()
    return replace(checked, diagnostics=diagnostics, sources=built.sources)


def _make_render(parts: StackParts, install: InstallFacts, inputs: Mapping[str, str]) -> Render:
    """Return a function that renders with what a new install's state has."""
    values = {item.name: item.default or "" for item in parts.inputs} | dict(inputs)
    account = {"region": install.account.region}
    places = {
        "aws": account,
        "azure": {"location": install.account.region},
        "gcp": {**account, "project_id": install.account.id},
    }
    state = {
        "id": install.install_id,
        "name": install.install,
        "labels": {},
        "org": {"id": install.org_id, "name": install.org_id},
        "app": {"id": install.app, "name": install.app},
        "inputs": {"inputs": values},
        "install": {"id": install.install_id, "name": install.install, "inputs": values},
        "cloud_account": {parts.cloud: places[parts.cloud]},
    }
    return lambda text: render_text(text, {ROOT: state})


def _report(report: Report, app: App, finding: Finding, render: Render) -> None:
    add = report.error if finding.severity is Severity.ERROR else report.warn
    entry = _find_entry(app, finding, render)
    if entry is None:
        add(finding.code, finding.section or "stack.toml", finding.message, finding.hint)
        return
    add(finding.code, _find_place(entry, finding), finding.message, finding.hint)


def _find_entry(app: App, finding: Finding, render: Render) -> Entry | None:
    """Return the part that a finding is about; a cloud knows its rendered name only."""
    near = [entry for entry in app.entries if _is_in_section(entry, finding.section)]
    for entry in near:
        if entry.section == finding.section and entry.name == finding.name:
            return entry
    if not finding.name:
        return near[0] if len(near) == 1 else None
    return next((entry for entry in near if render(entry.name) == finding.name), None)


def _is_in_section(entry: Entry, section: str) -> bool:
    return entry.section == section or (section, entry.section) == ("permissions", "break_glass")


def _find_place(entry: Entry, finding: Finding) -> Place:
    for text in entry.texts:
        if text.at == finding.at:
            if finding.position is not None:
                return locate(text, finding.position)
            return text.place.value
    return entry.place.child(*finding.at) if finding.at else entry.place


def _join(directory: Iterable[Diagnostic], stack: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Return all diagnostics in order; of two about the same thing, that of the Stack."""
    own = set(stack)
    lines = {(item.code, item.file, item.line) for item in own}
    words = {(item.code, item.message) for item in own}
    others = {
        item
        for item in directory
        if (item.code, item.file, item.line) not in lines and (item.code, item.message) not in words
    }
    report = Report(diagnostics=own | others)
    return report.sorted()
