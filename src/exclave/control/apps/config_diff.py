"""Compare two config versions part by part and field by field."""

import difflib
import json
import posixpath
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from exclave.appconfig.model.kinds.shared import HERE
from exclave.domain.configs import HashedPart, Part

Folders = Mapping[str, str]
"""The digest of each folder of the app's directory, by path."""
NOTHING: Folders = {}
FILES = "files"
"""The field that stands for the content of a source folder."""


class Change(StrEnum):
    """How a part differs between two versions."""

    ADDED = "added"
    CHANGED = "changed"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One field; None is a field that is not there."""

    path: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class PartChange:
    """A part that is new, different or gone."""

    section: str
    name: str
    change: Change
    fields: tuple[FieldChange, ...] = ()

    @property
    def key(self) -> str:
        """Name it in one word, such as `component:api` or `sandbox`."""
        return f"{self.section}:{self.name}" if self.name else self.section


@dataclass(frozen=True, slots=True)
class ConfigDiff:
    """All that differs."""

    parts: tuple[PartChange, ...]

    @property
    def keys(self) -> tuple[str, ...]:
        """Name every part that differs."""
        return tuple(part.key for part in self.parts)


def diff_lines(texts: Sequence[tuple[str, str]]) -> list[str]:
    """Compare texts line by line, as unified diffs. It may take long: a worker does it."""
    return [
        "\n".join(
            list(difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=3))[2:]
        )
        for old, new in texts
    ]


def diff_parts(
    before: Sequence[Part],
    after: Sequence[Part],
    old_folders: Folders = NOTHING,
    new_folders: Folders = NOTHING,
) -> ConfigDiff:
    """Compare the parts of two versions, in the order of the newer one; removed ones come last.

    The content of folders tells of a part that changed whether its files did as well.
    """
    old = {(part.section, part.name): part for part in before}
    new = {(part.section, part.name): part for part in after}
    changes: list[PartChange] = []
    for key, part in new.items():
        was = old.get(key)
        if was is None:
            changes.append(PartChange(*key, Change.ADDED))
        elif was.hash != part.hash:
            fields, held = _diff_values(was, part), _list_content(was.value, old_folders)
            # The same definition under another hash: its files are what changed.
            if not fields or held != _list_content(part.value, new_folders):
                fields += (FieldChange(FILES, was.hash, part.hash),)
            changes.append(PartChange(*key, Change.CHANGED, fields))
    changes += [PartChange(*key, Change.REMOVED) for key in old if key not in new]
    return ConfigDiff(tuple(changes))


def find_changed(before: Sequence[HashedPart], after: Sequence[HashedPart]) -> list[str]:
    """Return the names of the parts that differ, by hashes alone."""
    old = {(part.section, part.name): part.hash for part in before}
    new = {(part.section, part.name): part.hash for part in after}
    keys = [key for key, digest in new.items() if old.get(key) != digest]
    keys += [key for key in old if key not in new]
    return [f"{section}:{name}" if name else section for section, name in keys]


def _diff_values(before: Part, after: Part) -> tuple[FieldChange, ...]:
    old, new = dict(_flatten(before.value)), dict(_flatten(after.value))
    return tuple(
        FieldChange(path, old.get(path), new.get(path))
        for path in dict.fromkeys([*old, *new])
        if old.get(path) != new.get(path)
    )


def _list_content(value: object, folders: Folders) -> list[str]:
    """List what the folders hold that a part takes its files from."""
    match value:
        case Mapping() if value.get("repo") == HERE:
            return [folders.get(posixpath.normpath(value.get("directory") or "."), "")]
        case Mapping():
            return [content for item in value.values() for content in _list_content(item, folders)]
        case list() | tuple():
            return [content for item in value for content in _list_content(item, folders)]
        case _:
            return []


def _flatten(value: object, path: str = "") -> Iterator[tuple[str, str]]:
    match value:
        case Mapping() if value or not path:
            for key, item in value.items():
                yield from _flatten(item, f"{path}.{key}" if path else str(key))
        case list() | tuple() if value and any(isinstance(item, Mapping) for item in value):
            for index, item in enumerate(value):
                yield from _flatten(item, f"{path}[{_label(index, item)}]")
        case str():
            yield path, value
        case _:
            yield path, json.dumps(value, ensure_ascii=False)


def _label(index: int, item: object) -> str:
    """Call an item of a list by its name, so that a new one in front moves no other."""
    name = item.get("name") if isinstance(item, Mapping) else None
    return str(name) if isinstance(name, str) and name else str(index)
