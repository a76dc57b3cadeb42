"""Checks of overlays before kustomize reads them: whatever they name is in the fetched source.

kustomize fetches whatever looks like an address, and with `load_restrictor = "none"` it reads any
file of the machine. So only fields that are known are allowed, and each path in them is resolved.
"""

import os
import re
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from exclave.base.json_values import Json, JsonObject, list_or_empty, object_or_empty
from exclave.runner.builds.overlay_fields import (
    FOLDER_FIELDS,
    INLINE_FIELDS,
    SAFE_FIELDS,
    list_paths,
    list_plugin_paths,
)
from exclave.runner.kube.api.objects import describe_flaws
from exclave.runner.kube.api.yaml_reader import MAX_TEXT, YamlRefused, read_document, read_documents
from exclave.runner.outcomes import WorkFailed
from exclave.wire.jobs import Reason

NAMES: Final = ("kustomization.yaml", "kustomization.yml", "Kustomization")
_REMOTE: Final = re.compile(r"(?i)\s*([^/\n]*[:@]|github\.com|.*://|.*::)")
"""What kustomize takes for an address, and a little more: `https://…`, `git@…:…`, `gh:…`."""
_WEB: Final = re.compile(r"(?i)\s*https?:")
_MOST_FOLDERS: Final = 500
_CHARTS: Final = "charts"
_CHART_WORDS: Final = frozenset(
    {
        "additionalvaluesfiles",
        "apiversions",
        "debug",
        "devel",
        "includecrds",
        "kubeversion",
        "name",
        "namespace",
        "releasename",
        "skiphooks",
        "skiptests",
        "valuesfile",
        "valuesinline",
        "valuesmerge",
        "version",
    }
)
"""Keys of a chart in an overlay; others would let helm fetch it or read the environment."""


def check_overlay(root: Path, overlay: Path) -> None:
    """Raise with everything that leads an overlay, or one of its bases, out of the source."""
    check = _OverlayCheck(root.resolve())
    check.check_all(overlay.resolve())
    if check.flaws:
        raise WorkFailed(Reason.SOURCE_INVALID, describe_flaws(check.flaws))


@dataclass(slots=True)
class _OverlayCheck:
    """Walks from an overlay to its bases and components."""

    root: Path
    flaws: list[str] = field(default_factory=list)
    _waiting: deque[Path] = field(default_factory=deque)
    _known: set[Path] = field(default_factory=set)

    def check_all(self, overlay: Path) -> None:
        """Check an overlay and all folders that it leads to."""
        self._enter(overlay)
        while self._waiting:
            folder = self._waiting.popleft()
            if len(self._known) > _MOST_FOLDERS:
                self.flaws.append(f"the overlay is made of more than {_MOST_FOLDERS} folders")
                return
            for file in (folder / name for name in NAMES):
                if file.exists():
                    self._check_file(file)

    def _enter(self, folder: Path) -> None:
        if folder not in self._known:
            self._known.add(folder)
            self._waiting.append(folder)

    def _check_file(self, file: Path) -> None:
        where, folder = self._name(file), file.parent
        try:
            if not file.resolve().is_relative_to(self.root):
                self.flaws.append(f"{where}: it is a link that leads out of the source")
                return
            fields = object_or_empty(read_document(_read(file)))
        except (YamlRefused, UnicodeDecodeError, OSError) as error:
            self.flaws.append(f"{where}: {error}")
            return
        for key, value in fields.items():
            self._check_field(where, folder, key, value, fields)

    def _check_field(
        self, where: str, folder: Path, key: str, value: Json, fields: JsonObject
    ) -> None:
        """Check one field of a kustomization. Its name is compared as it is: kustomize is laxer."""
        if key in SAFE_FIELDS or key == "helmGlobals":
            return
        if key == "patches":
            # Texts in it are read like those of `patchesStrategicMerge`.
            for text in (entry for entry in list_or_empty(value) if isinstance(entry, str)):
                self._check_inline(where, folder, text, is_plugin=False)
        if key == "helmCharts":
            home = object_or_empty(fields.get("helmGlobals"))
            self._check_charts(where, folder, value, home)
        elif key in INLINE_FIELDS:
            for text in map(str, list_or_empty(value)):
                self._check_inline(where, folder, text, is_plugin=key != "patchesStrategicMerge")
        elif (paths := list_paths(key, value)) is not None:
            for text in paths:
                target = self._find(where, folder, text)
                if target is not None and key in FOLDER_FIELDS and target.is_dir():
                    self._enter(target)
        else:
            self.flaws.append(f"{where}: builds do not support the field `{key}` of kustomize")

    def _check_inline(self, where: str, folder: Path, text: str, *, is_plugin: bool) -> None:
        """Check a text that is a path or, if there is no such file, YAML."""
        if not _WEB.match(text) and not _exists(folder / text):
            try:
                values = [object_or_empty(entry.value) for entry in read_documents(text)]
            except YamlRefused:
                values = []
            if values and all(value.get("kind") for value in values):
                for value in values if is_plugin else ():
                    self._check_plugin(where, folder, value)
                return
        target = self._find(where, folder, text)
        if target is None or not is_plugin:
            return
        if target.is_dir():
            self.flaws.append(f"{where}: name the files in the folder `{text}` one by one")
            return
        try:
            for entry in read_documents(_read(target)):
                self._check_plugin(self._name(target), folder, object_or_empty(entry.value))
        except (YamlRefused, UnicodeDecodeError, OSError) as error:
            self.flaws.append(f"{self._name(target)}: {error}")

    def _check_plugin(self, where: str, folder: Path, value: JsonObject) -> None:
        kind = str(value.get("kind"))
        if kind == "HelmChartInflationGenerator":
            rest = {name: entry for name, entry in value.items() if name not in SAFE_FIELDS}
            home = {"chartHome": rest.pop("chartHome", _CHARTS)}
            chart = {**rest, "namespace": value.get("namespace")}
            self._check_charts(where, folder, [chart], home)
            return
        paths = list_plugin_paths(kind, value)
        if paths is None:
            self.flaws.append(f"{where}: builds do not support the plugin `{kind}` of kustomize")
            return
        for text in paths:
            self._find(where, folder, text)

    def _check_charts(self, where: str, folder: Path, value: Json, home: JsonObject) -> None:
        """Check charts that are rendered: they and their files of values are in the source."""
        if home.keys() - {"chartHome"}:
            self.flaws.append(f"{where}: of `helmGlobals`, builds support only `chartHome`")
        charts = str(home.get("chartHome") or _CHARTS)
        for chart in map(object_or_empty, list_or_empty(value)):
            keys = {key.lower(): entry for key, entry in chart.items()}
            unknown = sorted(keys.keys() - _CHART_WORDS)
            if unknown:
                self.flaws.append(
                    f"{where}: builds do not support `{'`, `'.join(unknown)}` of a chart: charts"
                    f" have to be in the source, in `{charts}`"
                )
            for text in _list_words(keys):
                if text.startswith("-"):
                    self.flaws.append(f"{where}: `{text}` would be an option of helm")
            for text in _list_files(keys):
                self._find(where, folder, text)
            target = self._find(where, folder, f"{charts}/{keys.get('name')}")
            if target is not None:
                self._check_links(target)

    def _check_links(self, folder: Path) -> None:
        """Helm follows links in charts, so none may lead out of the source."""
        for place, folders, files in os.walk(folder):
            for path in (Path(place, name) for name in (*folders, *files)):
                if path.is_symlink() and not path.resolve().is_relative_to(self.root):
                    self.flaws.append(f"{self._name(path)}: the link leads out of the source")

    def _find(self, where: str, folder: Path, text: str) -> Path | None:
        """Return what a path names; None with a flaw unless it is there, and in the source."""
        if _REMOTE.match(text):
            self.flaws.append(
                f"{where}: `{text}` is fetched from elsewhere: put it into the source, whose"
                " content is pinned"
            )
            return None
        # kustomize shortens `a/..` without looking whether `a` is a link; the system looks.
        plain = Path(os.path.normpath(folder / text))
        if not all(_is_inside(path, self.root) for path in (plain, folder / text)):
            self.flaws.append(f"{where}: `{text}` leads out of the source")
            return None
        if not _exists(plain):
            self.flaws.append(f"{where}: there is no `{text}` in the source")
            return None
        return plain.resolve()

    def _name(self, path: Path) -> str:
        return os.path.relpath(path, self.root)


def _is_inside(path: Path, root: Path) -> bool:
    try:
        return path.is_relative_to(root) and path.resolve().is_relative_to(root)
    except (OSError, RuntimeError, ValueError):
        return False


def _exists(path: Path) -> bool:
    """Return whether a path names something; a text that is no path at all does not."""
    try:
        return os.path.lexists(os.path.normpath(path)) or path.exists()
    except (OSError, ValueError):
        return False


def _read(file: Path) -> str:
    if file.stat().st_size > MAX_TEXT:
        raise YamlRefused(f"a text may have {MAX_TEXT >> 20} MiB")
    return file.read_text(encoding="utf-8")


def _list_words(chart: Mapping[str, Json]) -> Iterator[str]:
    """Yield the texts of a chart that become words of a command line."""
    for key, value in chart.items():
        if key != "valuesinline":
            yield from (str(entry) for entry in (value if isinstance(value, list) else [value]))


def _list_files(chart: Mapping[str, Json]) -> Iterator[str]:
    if chart.get("valuesfile"):
        yield str(chart["valuesfile"])
    yield from map(str, list_or_empty(chart.get("additionalvaluesfiles")))
