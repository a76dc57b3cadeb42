"""A file of the app directory as text, and positions in it."""

import bisect
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from exclave.appconfig.diagnostics.positions import KeyPath, Spot, index_keys, locate_characters


@dataclass(frozen=True, slots=True)
class Position:
    """A line and a column, both counted from 1."""

    line: int
    column: int


WHOLE = Position(1, 1)
"""The position of findings about a file as a whole."""


class _Inner(NamedTuple):
    """Where the lines and the characters of a string value begin."""

    starts: list[int]
    offsets: Sequence[int]


@dataclass(frozen=True, eq=False)
class Source:
    """A file by its path from the app directory, with its text."""

    path: str
    text: str
    is_toml: bool = True

    def locate_key(self, at: KeyPath) -> Position:
        """Return the position of a key, or of the nearest table around it."""
        spot = self._find(at)
        return WHOLE if spot is None else self.locate_offset(spot.key)

    def has_key(self, at: KeyPath) -> bool:
        """Return whether a key is present in the file."""
        return at in self._keys

    def locate_value(self, at: KeyPath) -> Position:
        """Return the position of a key's value, or of the nearest table around it."""
        spot = self._find(at)
        return WHOLE if spot is None else self.locate_offset(spot.value)

    def locate_inside(self, at: KeyPath, content: str, inner: Position) -> Position:
        """Return the position of an offset inside the string value of a key, escapes included."""
        spot = self._find(at)
        if spot is None or at not in self._keys:
            return self.locate_key(at)
        if at not in self._inner:
            offsets = locate_characters(self.text, spot.value, len(content) + 1)
            self._inner.clear()
            self._inner[at] = _Inner(_find_lines(content), offsets)
        starts, offsets = self._inner[at]
        line = min(max(inner.line, 1), len(starts))
        count = starts[line - 1] + max(inner.column, 1) - 1
        return self.locate_offset(offsets[min(count, len(offsets) - 1)] if offsets else spot.value)

    def locate_offset(self, offset: int) -> Position:
        """Return the line and column of an offset."""
        line = bisect.bisect_right(self._lines, offset)
        return Position(line, offset - self._lines[line - 1] + 1)

    def read_line(self, line: int) -> str:
        """Return one line, without its line end."""
        if not 0 < line <= len(self._lines):
            return ""
        start = self._lines[line - 1]
        end = self._lines[line] if line < len(self._lines) else len(self.text)
        return self.text[start:end].rstrip("\r\n")

    def _find(self, at: KeyPath) -> Spot | None:
        for length in range(len(at), 0, -1):
            if at[:length] in self._keys:
                return self._keys[at[:length]]
        return Spot(0, 0) if self.text else None

    @functools.cached_property
    def _inner(self) -> dict[KeyPath, _Inner]:
        """A cache of the last text, because findings about one text come together."""
        return {}

    @functools.cached_property
    def _keys(self) -> Mapping[KeyPath, Spot]:
        return index_keys(self.text) if self.is_toml else {}

    @functools.cached_property
    def _lines(self) -> list[int]:
        return _find_lines(self.text)


def _find_lines(text: str) -> list[int]:
    starts = [0]
    at = text.find("\n")
    while at >= 0:
        starts.append(at + 1)
        at = text.find("\n", at + 1)
    return starts
