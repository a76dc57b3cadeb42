"""Differences between two JSON documents, path by path."""

from collections.abc import Iterator
from dataclasses import dataclass

from exclave.base.printable import dump_json, escape_line


class _Absent:
    pass


ABSENT = _Absent()


@dataclass(frozen=True, slots=True)
class Change:
    """A value that was added, removed or changed."""

    path: str
    before: object
    after: object

    def write(self) -> str:
        """Return the change as a line of text."""
        path = escape_line(self.path)
        if self.before is ABSENT:
            return f"+ {path} = {dump_json(self.after)}"
        if self.after is ABSENT:
            return f"- {path} = {dump_json(self.before)}"
        return f"~ {path} = {dump_json(self.before)} -> {dump_json(self.after)}"

    def to_json(self) -> dict[str, object]:
        """Return the change as JSON, without a side that is absent."""
        sides = {"before": self.before, "after": self.after}
        return {"path": self.path, **{k: v for k, v in sides.items() if v is not ABSENT}}


def list_changes(before: object, after: object) -> list[Change]:
    """Return the differences; lists are compared as a whole."""
    return list(_compare("", before, after))


def _compare(path: str, before: object, after: object) -> Iterator[Change]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted({*before, *after}, key=str):
            yield from _compare(f"{path}.{key}", before.get(key, ABSENT), after.get(key, ABSENT))
    elif before != after or type(before) is not type(after):
        yield Change(path or ".", before, after)
