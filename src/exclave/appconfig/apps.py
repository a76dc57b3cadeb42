"""The door of the room: read an app directory, check it, and say what it is."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from exclave.appconfig.app import App
from exclave.appconfig.checks.all import check_app
from exclave.appconfig.diagnostics import Diagnostic, Report
from exclave.appconfig.graph import Graph, build_graph
from exclave.appconfig.hashes import hash_component
from exclave.appconfig.loading import Loader
from exclave.appconfig.reading import Directory, Limits
from exclave.appconfig.references import Fetcher
from exclave.appconfig.sources import Source
from exclave.appconfig.uses import find_all
from exclave.base.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class Reading:
    """What a directory says, and all that is wrong with it."""

    app: App
    graph: Graph
    diagnostics: tuple[Diagnostic, ...]
    hashes: Mapping[str, str]
    """The content hash of each component."""
    sources: Mapping[str, Source]
    """The files that diagnostics are in."""
    ok: bool


def read_app(
    directory: Path,
    *,
    strict: bool = False,
    limits: Limits | None = None,
    fetcher: Fetcher | None = None,
) -> Reading:
    """Read and check an app directory; only a directory that does not exist raises."""
    if not directory.is_dir():
        raise InvalidInput(
            f"there is no directory `{directory}`", hint="Name the directory of an app."
        )
    report = Report(strict)
    opened = Directory(directory, report, limits or Limits())
    app = App(opened.root.name, Loader(opened, fetcher).load())
    uses = find_all(app, report)
    check_app(app, uses, report)
    graph = build_graph(app, uses, report)
    hashes = {each.name: hash_component(each) for each in app.components if each.name}
    return Reading(app, graph, report.sorted(), hashes, report.sources, report.ok)
