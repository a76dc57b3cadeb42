"""The entry point of the package: read and check an app directory."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from exclave.appconfig.checks import components
from exclave.appconfig.checks.all import check_app
from exclave.appconfig.diagnostics.report import Diagnostic, Report
from exclave.appconfig.diagnostics.sources import Source
from exclave.appconfig.graph import Graph, build_graph
from exclave.appconfig.model.app import App
from exclave.appconfig.model.fields import NOTHING, Table
from exclave.appconfig.reading.directory import Directory, Limits
from exclave.appconfig.reading.loading import Loader
from exclave.appconfig.reading.references import Fetcher
from exclave.appconfig.stored.folders import check_folders, list_folders
from exclave.appconfig.stored.freezing import freeze
from exclave.appconfig.uses import find_all
from exclave.base.digests import digest_json
from exclave.base.errors import InvalidInput
from exclave.base.json_values import list_or_empty


@dataclass(frozen=True)
class CheckedApp:
    """An app directory that was read and checked: the app, its graph and all diagnostics."""

    app: App
    graph: Graph
    diagnostics: tuple[Diagnostic, ...]
    sources: Mapping[str, Source]
    """The files that diagnostics are in."""
    ok: bool
    folders: Mapping[str, str]
    """The digest of each folder of the directory that a part is built from."""

    @functools.cached_property
    def hashes(self) -> Mapping[str, str]:
        """The content hash of each component."""
        components = self.app.components
        return {
            component.name: self.hash_of(component) for component in components if component.name
        }

    def hash_of(self, table: Table) -> str:
        """Return the content hash of a part: its definition, embedded files and source folders.

        The hash covers only values that differ from their default, so that a new field of the
        format leaves the hashes of parts that do not use it unchanged. The order of dependencies
        does not matter.
        """
        definition = freeze(table)
        dependencies = list_or_empty(definition.get("dependencies"))
        if dependencies:
            definition["dependencies"] = sorted({str(name) for name in dependencies})
        folders = {name: self.folders.get(name, "") for name in list_folders(table)}
        if folders:
            definition["folders of the app directory"] = folders
        return digest_json(definition)


def read_app(
    directory: Path,
    *,
    strict: bool = False,
    sealed: bool = False,
    limits: Limits | None = None,
    fetcher: Fetcher | None = None,
    before: Mapping[str, str] = NOTHING,
) -> CheckedApp:
    """Read and check an app directory. Raise only if the directory does not exist.

    Links may point into the rest of the repository around it, unless it is `sealed`, as an
    untrusted directory must be. `before` holds the component types of the previous version.
    """
    if not directory.is_dir():
        raise InvalidInput(
            f"there is no directory `{directory}`", hint="Name the directory of an app."
        )
    report = Report(strict)
    opened = Directory(directory, report, limits or Limits(), sealed=sealed)
    app = App(opened.root.name, Loader(opened, fetcher).load())
    uses = find_all(app, report)
    check_app(app, uses, report)
    components.check_types(app, before, report)
    folders = check_folders(app, opened, report)
    graph = build_graph(app, uses, report)
    return CheckedApp(app, graph, report.sorted(), report.sources, report.ok, folders)
