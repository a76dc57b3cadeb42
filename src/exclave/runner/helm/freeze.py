"""Frozen charts: a release rendered once, packed as a chart whose templates only print files.

Random values, `lookup` and the time are decided when a plan is made. Helm installs a frozen chart
like any other: with hooks, in order, with records. No template text survives, so that `{{` in an
object is only text.
"""

import gzip
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from exclave.base.json_values import Json, JsonObject, list_or_empty, text_or_empty
from exclave.runner.helm.rendered import RenderedRelease
from exclave.runner.kube.api.objects import SourceObject
from exclave.runner.kube.api.yaml_writer import write_documents
from exclave.runner.kube.changes.plan_file import pack_files

Change = Callable[[JsonObject], JsonObject]
"""Returns an object with something changed, such as images that are pinned by digest."""

_TEMPLATE: Final = '{{ .Files.Get "%s" }}'
_CONTAINERS: Final = frozenset({"containers", "initContainers", "ephemeralContainers"})
_LEVEL: Final = 9


@dataclass(frozen=True, slots=True)
class FrozenRelease:
    """A release whose content is decided."""

    release: RenderedRelease
    chart: bytes
    """The package that Helm installs; the same release gives the same bytes."""
    warnings: Sequence[str]


def freeze(rendered: RenderedRelease, *changes: Change) -> FrozenRelease:
    """Return a release as a frozen chart, after every object went through the changes."""
    warnings: list[str] = []

    def finish(source: SourceObject) -> SourceObject:
        value, names = drop_duplicate_env(source.value)
        warnings.extend(
            f"{source.id.address}: the variable `{name}` is there twice, and the last one is taken"
            for name in names
        )
        for change in changes:
            value = change(value)
        return source._replace(value=value)

    release = replace(
        rendered,
        objects=[finish(source) for source in rendered.objects],
        hooks=[replace(hook, source=finish(hook.source)) for hook in rendered.hooks],
    )
    return FrozenRelease(release, pack_frozen(release), warnings)


def pack_frozen(release: RenderedRelease) -> bytes:
    """Return the package of a frozen chart."""
    metadata = {key: value for key, value in release.metadata.items() if key != "dependencies"}
    texts = {"manifest.yaml": write_documents(source.value for source in release.objects)}
    for number, hook in enumerate(release.hooks):
        texts[f"hook-{number:03d}.yaml"] = write_documents([hook.source.value])
    if release.notes:
        texts["NOTES.txt"] = release.notes
    files = {"Chart.yaml": json.dumps(metadata, sort_keys=True, ensure_ascii=False)}
    for name, text in texts.items():
        files[f"frozen/{name}"] = text
        files[f"templates/{name}"] = _TEMPLATE % f"frozen/{name}"
    folder = text_or_empty(metadata.get("name")) or "chart"
    packed = pack_files({f"{folder}/{name}": text.encode() for name, text in files.items()})
    return gzip.compress(packed, _LEVEL, mtime=0)


def drop_duplicate_env(value: JsonObject) -> tuple[JsonObject, list[str]]:
    """Return an object whose containers have each variable once, and the names that went.

    Client-side apply took the last one; server-side apply refuses the object.
    """
    dropped: list[str] = []
    cleaned = _clean(value, dropped)
    return (cleaned if isinstance(cleaned, Mapping) else value), dropped


def _clean(value: Json, dropped: list[str]) -> Json:
    if isinstance(value, Mapping):
        return {
            key: [_clean_container(part, dropped) for part in list_or_empty(part_value)]
            if key in _CONTAINERS and isinstance(part_value, Sequence)
            else _clean(part_value, dropped)
            for key, part_value in value.items()
        }
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_clean(part, dropped) for part in value]
    return value


def _clean_container(container: Json, dropped: list[str]) -> Json:
    if not isinstance(container, Mapping) or not isinstance(container.get("env"), Sequence):
        return container
    last: dict[str, Json] = {}
    for entry in list_or_empty(container["env"]):
        name = text_or_empty(entry.get("name")) if isinstance(entry, Mapping) else ""
        if name in last:
            dropped.append(name)
            del last[name]
        last[name] = entry
    return {**container, "env": list(last.values())}
