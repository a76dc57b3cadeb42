"""The contents of a chart: the charts that it brings along."""

import posixpath
import re
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from exclave.base.json_values import text_or_empty
from exclave.runner.builds.charts.chart_files import CHART_FILE, Chart, read_mapping
from exclave.runner.builds.sbom.attach import Contents
from exclave.runner.builds.sbom.packages import Package
from exclave.runner.kube.api.yaml_reader import YamlRefused, read_document
from exclave.runner.outcomes import WorkFailed

_MOST_ENTRIES: Final = 20_000
_MOST_CHART_FILE: Final = 1 << 20
_INSIDE: Final = re.compile(r"([^/]+/)(charts/[^/]+/)*Chart\.yaml")


def read_chart_contents(chart: Chart) -> Contents:
    """Return the charts in a chart's folder, packed or not; of the named ones with their source."""
    sources = {
        (needed.name, needed.version): needed.repository
        for needed in (*chart.dependencies, *(chart.locked or ()))
    }
    packages: set[Package] = set()
    notes: list[str] = []
    for path in sorted((chart.folder / "charts").rglob("*")):
        try:
            packages.update(_read_path(path))
        except (tarfile.TarError, zlib.error, EOFError, OSError, WorkFailed, YamlRefused):
            notes.append(f"{path.relative_to(chart.folder).as_posix()} cannot be read")
    named = [
        Package(
            "helm",
            package.name,
            package.version,
            repository=sources.get((package.name, package.version), ""),
        )
        for package in packages
    ]
    return Contents(sorted(named), notes)


def _read_path(path: Path) -> Iterator[Package]:
    if path.is_symlink() or not path.is_file():
        return
    if path.name == CHART_FILE:
        metadata = read_mapping(path, CHART_FILE)
        yield _describe(metadata.get("name"), metadata.get("version"))
    elif path.suffix == ".tgz":
        yield from _read_package(path)


def _read_package(path: Path) -> Iterator[Package]:
    with tarfile.open(path, mode="r|gz") as archive:
        for count, entry in enumerate(archive):
            if count >= _MOST_ENTRIES:
                raise tarfile.TarError
            is_chart = _INSIDE.fullmatch(posixpath.normpath(entry.name)) is not None
            if is_chart and entry.isfile() and entry.size <= _MOST_CHART_FILE:
                opened = archive.extractfile(entry)
                text = b"" if opened is None else opened.read()
                metadata = read_document(text.decode(errors="replace"))
                if isinstance(metadata, dict):
                    yield _describe(metadata.get("name"), metadata.get("version"))


def _describe(name: object, version: object) -> Package:
    return Package("helm", text_or_empty(name), str(version))  # type: ignore[arg-type]
