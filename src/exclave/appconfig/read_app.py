"""The door of the room: read an app directory, check it, and say what it is."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from exclave.appconfig.checks import components
from exclave.appconfig.checks.all import check_app
from exclave.appconfig.diagnostics import Diagnostic, Report
from exclave.appconfig.graph import Graph, build_graph
from exclave.appconfig.model.app import App
from exclave.appconfig.model.fields import NOTHING, Table
from exclave.appconfig.reading.directory import Directory, Limits
from exclave.appconfig.reading.loading import Loader
from exclave.appconfig.reading.references import Fetcher
from exclave.appconfig.reading.sources import Source
from exclave.appconfig.stored.folders import check_folders, list_folders
from exclave.appconfig.stored.hashes import hash_part
from exclave.appconfig.uses import find_all
from exclave.base.errors import InvalidInput


@dataclass(frozen=True)
class Reading:
    """What a directory says, and all that is wrong with it."""

    app: App
    graph: Graph
    diagnostics: tuple[Diagnostic, ...]
    sources: Mapping[str, Source]
    """The files that diagnostics are in."""
    ok: bool
    folders: Mapping[str, str]
    """The digest of each folder of the directory that something is built from."""

    @functools.cached_property
    def hashes(self) -> Mapping[str, str]:
        """The content hash of each component."""
        return {each.name: self.hash_of(each) for each in self.app.components if each.name}

    def hash_of(self, table: Table) -> str:
        """Name a part by its content, that of its source folders included."""
        return hash_part(table, {name: self.folders.get(name, "") for name in list_folders(table)})


def read_app(
    directory: Path,
    *,
    strict: bool = False,
    sealed: bool = False,
    limits: Limits | None = None,
    fetcher: Fetcher | None = None,
    before: Mapping[str, str] = NOTHING,
) -> Reading:
    """Read and check an app directory; only a directory that does not exist raises.

    Links may lead to the rest of the repository that it lies in; not so when it is `sealed`, as
    the directory of a stranger must be. `before` are the types of the components of the version
    that this one follows.
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
    return Reading(app, graph, report.sorted(), report.sources, report.ok, folders)
