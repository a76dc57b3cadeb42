"""Positions of keys in a TOML text, which the parser of the standard library does not provide.

The scanner runs only on text that `tomllib` has accepted, and only when a position is needed; so
it need not validate, and a directory without findings does not pay for it.
"""

import contextlib
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

KeyPath = tuple[str | int, ...]
"""Keys and list indexes from the top of the file: `("steps", 0, "name")`."""


@dataclass(frozen=True, slots=True)
class Spot:
    """Offsets of a key and of its value."""

    key: int
    value: int


def index_keys(text: str) -> Mapping[KeyPath, Spot]:
    """Return the offsets of every key, list element and table of a valid TOML text."""
    scanner = _Scanner(text)
    # Half an index still finds the keys above; what is not found falls back to its table.
    with contextlib.suppress(_LostError, RecursionError, IndexError):
        scanner.scan()
    return scanner.spots


def locate_characters(text: str, start: int, count: int) -> Sequence[int]:
    """Return the offsets of the first characters of the string value that starts at `start`."""
    quote = text[start : start + 1]
    if quote not in {'"', "'"}:
        return [start] * count
    at = start + 1
    if text.startswith(quote * 3, start):
        at = start + 3 + text.startswith("\n", start + 3)
    if quote == "'":
        return range(at, at + count)
    offsets: list[int] = []
    while at < len(text) and len(offsets) < count:
        width, counts = _measure_character(text, at)
        if counts:
            offsets.append(at)
        at += width
    return offsets


def _measure_character(text: str, at: int) -> tuple[int, int]:
    if text[at] != "\\":
        return 1, 1
    after = text[at + 1 : at + 2]
    if after in {"u", "U"}:
        return (6, 1) if after == "u" else (10, 1)
    if after in {" ", "\t", "\n"}:
        gap = _BLANK.match(text, at + 1)
        return 1 + (gap.end() - gap.start() if gap else 0), 0
    return 2, 1


_BLANK = re.compile(r"[ \t\n\r]*")
_GAP = re.compile(r"(?:[ \t\n\r]+|#[^\n]*)*")
_INNER_GAP = re.compile(r"[ \t]*")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_SCALAR = re.compile(r"[^,\]}\s#]+(?: \d\d:[^,\]}\s#]+)?")
_STRINGS = (
    re.compile(r'"""(?:[^"\\]|\\.|"(?!""))*"{3,5}', re.DOTALL),
    re.compile(r"'''(?:[^']|'(?!''))*'{3,5}", re.DOTALL),
    re.compile(r'"(?:[^"\\\n]|\\.)*"'),
    re.compile(r"'[^'\n]*'"),
)


class _LostError(Exception):
    """The text has a form that the scanner does not expect."""


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.spots: dict[KeyPath, Spot] = {}
        self.lengths: dict[KeyPath, int] = {}

    def scan(self) -> None:
        table: KeyPath = ()
        self._skip(_GAP)
        while self.at < len(self.text):
            if self.text[self.at] == "[":
                table = self._scan_header()
            else:
                self._scan_pair(table)
            self._skip(_GAP)

    def _scan_header(self) -> KeyPath:
        start = self.at
        double = self.text.startswith("[[", start)
        self.at += 2 if double else 1
        names = [name for name, _ in self._scan_keys()]
        self._expect("]]" if double else "]")
        path: KeyPath = ()
        for name in names[:-1]:
            path = self._enter((*path, name))
            self.spots.setdefault(path, Spot(start, start))
        path = (*path, names[-1])
        self.spots.setdefault(path, Spot(start, start))
        if not double:
            return path
        index = self.lengths.get(path, 0)
        self.lengths[path] = index + 1
        self.spots[*path, index] = Spot(start, start)
        return (*path, index)

    def _enter(self, path: KeyPath) -> KeyPath:
        return (*path, self.lengths[path] - 1) if path in self.lengths else path

    def _scan_pair(self, table: KeyPath) -> None:
        keys = self._scan_keys()
        self._expect("=")
        self._skip(_INNER_GAP)
        path = table
        for name, at in keys:
            path = (*path, name)
            self.spots.setdefault(path, Spot(at, self.at))
        self._scan_value(path)

    def _scan_keys(self) -> list[tuple[str, int]]:
        keys = []
        while True:
            self._skip(_INNER_GAP)
            start = self.at
            if self.text[start] in {'"', "'"}:
                self._scan_string()
                name = tomllib.loads(f"x={self.text[start : self.at]}")["x"]
            else:
                self._skip(_BARE)
                name = self.text[start : self.at]
            if self.at == start:
                raise _LostError
            keys.append((name, start))
            self._skip(_INNER_GAP)
            if self.text[self.at] != ".":
                return keys
            self.at += 1

    def _scan_value(self, path: KeyPath) -> None:
        match self.text[self.at]:
            case '"' | "'":
                self._scan_string()
            case "[":
                self._scan_array(path)
            case "{":
                self._scan_inline(path)
            case _:
                if not self._skip(_SCALAR):
                    raise _LostError

    def _scan_array(self, path: KeyPath) -> None:
        self.at += 1
        index = 0
        self._skip(_GAP)
        while self.text[self.at] != "]":
            self.spots[*path, index] = Spot(self.at, self.at)
            self._scan_value((*path, index))
            index += 1
            self._skip(_GAP)
            if self.text[self.at] == ",":
                self.at += 1
                self._skip(_GAP)
        self.at += 1

    def _scan_inline(self, path: KeyPath) -> None:
        self.at += 1
        self._skip(_GAP)
        while self.text[self.at] != "}":
            self._scan_pair(path)
            self._skip(_GAP)
            if self.text[self.at] == ",":
                self.at += 1
                self._skip(_GAP)
        self.at += 1

    def _scan_string(self) -> None:
        if not any(self._skip(form) for form in _STRINGS):
            raise _LostError

    def _expect(self, text: str) -> None:
        self._skip(_INNER_GAP)
        if not self.text.startswith(text, self.at):
            raise _LostError
        self.at += len(text)

    def _skip(self, form: re.Pattern[str]) -> bool:
        match = form.match(self.text, self.at)
        if match is None:
            return False
        self.at = match.end()
        return True
