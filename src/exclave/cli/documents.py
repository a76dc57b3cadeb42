"""What differs between two JSON documents, path by path."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


class _Absent:
    pass


ABSENT = _Absent()


@dataclass(frozen=True, slots=True)
class Change:
    """A value that is new, gone or another one."""

    path: str
    before: object
    after: object

    def write(self) -> str:
        """Write it as a line."""
        if self.before is ABSENT:
            return f"+ {self.path} = {_show(self.after)}"
        if self.after is ABSENT:
            return f"- {self.path} = {_show(self.before)}"
        return f"~ {self.path} = {_show(self.before)} -> {_show(self.after)}"

    def tell(self) -> dict[str, Any]:
        """Say it for programs; a side that is absent is left out."""
        sides = {"before": self.before, "after": self.after}
        return {"path": self.path, **{k: v for k, v in sides.items() if v is not ABSENT}}


def list_changes(before: object, after: object) -> list[Change]:
    """List what differs; lists are compared as wholes."""
    return list(_compare("", before, after))


def _compare(path: str, before: object, after: object) -> Iterator[Change]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted({*before, *after}, key=str):
            yield from _compare(f"{path}.{key}", before.get(key, ABSENT), after.get(key, ABSENT))
    elif before != after or type(before) is not type(after):
        yield Change(path or ".", before, after)


def _show(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
