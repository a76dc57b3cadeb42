"""Differences between two objects, field by field; entries of lists are matched by their key."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeGuard

from exclave.base.json_values import Json, JsonObject
from exclave.runner.plans.shown_values import write_path

FieldPath = tuple[Json, ...]
"""The keys that lead to a field. An entry of a list is a tuple of its key, or its index."""

_LIST_KEYS: Final = ("name", "containerPort", "port", "mountPath", "key", "ip", "type")
"""Fields by which entries of a list are matched, in the order in which they are tried."""


class FieldChange(NamedTuple):
    """A field that differs; None where it is absent."""

    path: FieldPath
    before: Json
    after: Json


def list_changes(before: Json, after: Json, path: FieldPath = ()) -> Iterator[FieldChange]:
    """Yield the fields that differ."""
    if before == after:
        return
    match before, after:
        case Mapping(), Mapping():
            for key in sorted({*before, *after}):
                yield from list_changes(before.get(key), after.get(key), (*path, key))
        case (Sequence(), Sequence()) if _is_list(before) and _is_list(after):
            for entry_key, old, new in _match_entries(before, after):
                yield from list_changes(old, new, (*path, entry_key))
        case (None, Mapping() | Sequence()) if after and not isinstance(after, str):
            yield from _list_added(after, path)
        case _:
            yield FieldChange(path, before, after)


def list_wanted_changes(live: Json, wanted: Json, path: FieldPath = ()) -> Iterator[FieldChange]:
    """Yield the fields of the wanted object that differ; what it does not name is left out."""
    match live, wanted:
        case Mapping(), Mapping():
            for key in sorted(wanted):
                yield from list_wanted_changes(live.get(key), wanted[key], (*path, key))
        case (Sequence(), Sequence()) if _is_list(live) and _is_list(wanted):
            for entry_key, old, new in _match_entries(live, wanted):
                if new is not None:
                    yield from list_wanted_changes(old, new, (*path, entry_key))
        case _:
            yield from list_changes(live, wanted, path)


def write_field_path(path: FieldPath) -> str:
    """Return a path such as `spec.containers["web"].image`."""
    text = ""
    for key in path:
        if isinstance(key, tuple):
            text += f"[{json.dumps(key[0], ensure_ascii=False)}]"
        else:
            step = write_path((key,))
            text += f".{step}" if text and not step.startswith("[") else step
    return text


def describe_new(value: JsonObject) -> list[FieldChange]:
    """Return the fields of an object that does not exist yet, without those that identify it."""
    return [change for change in _list_added(value, ()) if change.path not in _IDENTITY]


def _list_added(value: Json, path: FieldPath) -> Iterator[FieldChange]:
    if isinstance(value, Mapping) and value:
        for key in sorted(value):
            yield from _list_added(value[key], (*path, key))
    elif _is_list(value) and value:
        for entry_key, _, entry in _match_entries((), value):
            yield from _list_added(entry, (*path, entry_key))
    else:
        yield FieldChange(path, None, value)


def _match_entries(
    before: Sequence[Json], after: Sequence[Json]
) -> Iterator[tuple[Json, Json, Json]]:
    """Yield key, old and new of each entry."""
    name = _choose_key(before, after)
    if name is None:
        for at in range(max(len(before), len(after))):
            yield at, _get(before, at), _get(after, at)
        return
    old, new = _index(before, name), _index(after, name)
    for text, (key, entry) in old.items():
        yield (key,), entry, new[text][1] if text in new else None
    for text, (key, entry) in new.items():
        if text not in old:
            yield (key,), None, entry


def _choose_key(before: Sequence[Json], after: Sequence[Json]) -> str | None:
    """Return the field that identifies the entries of both lists; None if no field does."""
    for name in _LIST_KEYS:
        if all(_has_unique(entries, name) for entries in (before, after)) and (before or after):
            return name
    return None


def _has_unique(entries: Sequence[Json], name: str) -> bool:
    keys = {
        json.dumps(entry[name])
        for entry in entries
        if isinstance(entry, Mapping) and isinstance(entry.get(name), str | int)
    }
    return len(keys) == len(entries)


def _index(entries: Sequence[Json], name: str) -> dict[str, tuple[Json, Json]]:
    return {
        json.dumps(entry[name]): (entry[name], entry)
        for entry in entries
        if isinstance(entry, Mapping)
    }


def _get(entries: Sequence[Json], at: int) -> Json:
    return entries[at] if at < len(entries) else None


def _is_list(value: Json) -> TypeGuard[Sequence[Json]]:
    return isinstance(value, Sequence) and not isinstance(value, str)


_IDENTITY: Final = frozenset(
    {("apiVersion",), ("kind",), ("metadata", "name"), ("metadata", "namespace")}
)
