"""Checks of a chart's folder before Helm sees it; errors name the file."""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

from exclave.base.archives import LEFT_OUT
from exclave.base.json_values import (
    Json,
    JsonObject,
    list_or_empty,
    object_or_empty,
    text_or_empty,
)
from exclave.runner.builds.charts.versions import ChartVersion
from exclave.runner.builds.source_checks import check_files
from exclave.runner.kube.api.yaml_reader import YamlRefused, read_document
from exclave.runner.outcomes import WorkFailed
from exclave.wire.jobs import Reason

CHART_FILE: Final = "Chart.yaml"
LOCK_FILES: Final = ("Chart.lock", "requirements.lock")
"""The names of lock files: of today's charts, and of those of Helm 2."""
_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9._-]{0,249}")
_MOST_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Dependency:
    """A chart that another one needs, as its files name it."""

    name: str
    version: str
    repository: str


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart's folder, checked."""

    folder: Path
    name: str
    version: str
    metadata: JsonObject
    """The content of `Chart.yaml`."""
    dependencies: tuple[Dependency, ...]
    locked: tuple[Dependency, ...] | None
    """What the lock file names; None if there is none."""
    files: int


def read_chart(folder: Path, root: Path) -> Chart:
    """Check a chart and return what it is; `root` is the source, which no link may leave."""
    file = folder / CHART_FILE
    if not file.is_file():
        _refuse(f"there is no chart in the folder: it has no `{CHART_FILE}`{_suggest(folder)}")
    check_links(folder, root)
    files = check_files(folder)
    metadata = read_mapping(file, CHART_FILE)
    _check_metadata(metadata)
    is_old = metadata["apiVersion"] == "v1"
    listed = folder / ("requirements.yaml" if is_old else CHART_FILE)
    lock = folder / LOCK_FILES[is_old]
    return Chart(
        folder=folder,
        name=text_or_empty(metadata.get("name")),
        version=_spell(metadata.get("version")),
        metadata=metadata,
        dependencies=_read_dependencies(listed),
        locked=_read_dependencies(lock) if lock.is_file() else None,
        files=files,
    )


def check_links(folder: Path, root: Path) -> None:
    """Raise if a link in the chart leads outside of the source: Helm would follow it."""
    inside = root.resolve()
    for path in _walk(folder):
        if path.is_symlink() and not _is_inside(path, inside):
            name = path.relative_to(folder).as_posix()
            _refuse(f"the link `{name}` leads outside of the source, or to nothing")


def read_mapping(file: Path, name: str) -> JsonObject:
    """Return a YAML file of the chart that has to be a mapping."""
    data = file.read_bytes()
    if len(data) > _MOST_BYTES:
        _refuse(f"{name}: it has more than {_MOST_BYTES} bytes")
    try:
        value = read_document(data.decode())
    except UnicodeDecodeError:
        _refuse(f"{name}: it is not valid UTF-8")
    except YamlRefused as problem:
        line = problem.line or 1
        _refuse(f"{name}:{line}: {problem.message.removeprefix(f'line {line}: ')}")
    if not isinstance(value, Mapping):
        _refuse(f"{name}: it has to be a mapping of keys to values")
    return value


def _check_metadata(metadata: JsonObject) -> None:
    version = _spell(metadata.get("version"))
    if metadata.get("apiVersion") not in {"v1", "v2"}:
        _refuse(f"{CHART_FILE}: `apiVersion` has to be v1 or v2")
    if not _NAME.fullmatch(text_or_empty(metadata.get("name"))):
        _refuse(f"{CHART_FILE}: `name` is missing, or is not a valid chart name")
    if ChartVersion.parse(version) is None:
        _refuse(f"{CHART_FILE}: `version` has to be a semantic version such as 1.2.3")
    if metadata.get("type") == "library":
        _refuse(f"{CHART_FILE}: this is a library chart, which other charts use: it has no objects")


def _read_dependencies(file: Path) -> tuple[Dependency, ...]:
    if not file.is_file():
        return ()
    dependencies = []
    for listed in list_or_empty(read_mapping(file, file.name).get("dependencies")):
        entry = object_or_empty(listed)
        name, repository = (text_or_empty(entry.get(key)) for key in ("name", "repository"))
        if not name:
            _refuse(f"{file.name}: a dependency has no `name`")
        dependencies.append(Dependency(name, _spell(entry.get("version")), repository))
    return tuple(dependencies)


def _spell(value: Json) -> str:
    """Return a version as it was meant: `version: 1.2` is a number in YAML."""
    return str(value) if isinstance(value, str | int | float) else ""


def _walk(folder: Path) -> Iterator[Path]:
    with os.scandir(folder) as scan:
        entries = sorted(entry.path for entry in scan if entry.name not in LEFT_OUT)
    for path in map(Path, entries):
        yield path
        if path.is_dir() and not path.is_symlink():
            yield from _walk(path)


def _is_inside(path: Path, root: Path) -> bool:
    try:
        return path.resolve(strict=True).is_relative_to(root)
    except (OSError, RuntimeError):
        return False


def _suggest(folder: Path) -> str:
    charts = sorted(path.parent.relative_to(folder) for path in folder.glob(f"*/{CHART_FILE}"))
    names = ", ".join(f"`{name}`" for name in charts[:8])
    return f"; there are charts in {names}" if names else ""


def _refuse(message: str) -> NoReturn:
    raise WorkFailed(Reason.SOURCE_INVALID, message)
