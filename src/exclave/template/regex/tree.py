"""The parsed form of a regular expression."""

from bisect import bisect_right
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

LAST = 0x10FFFF


class BadPattern(ValueError):  # noqa: N818 - it becomes a problem
    """A pattern that Go's regexp would refuse."""


class Anchor(StrEnum):
    """A condition between two characters."""

    TEXT_START = "\\A"
    TEXT_END = "\\z"
    LINE_START = "^"
    LINE_END = "$"
    BOUNDARY = "\\b"
    NO_BOUNDARY = "\\B"


class Charset:
    """A set of characters, as ranges of their numbers."""

    __slots__ = ("_ends", "_starts", "folds", "negated")

    def __init__(
        self, ranges: list[tuple[int, int]], *, negated: bool = False, folds: bool = False
    ) -> None:
        merged: list[tuple[int, int]] = []
        for start, end in sorted(ranges):
            if merged and start <= merged[-1][1] + 1:
                merged[-1] = (merged[-1][0], max(merged[-1][1], end))
            else:
                merged.append((start, end))
        self._starts = [start for start, _ in merged]
        self._ends = [end for _, end in merged]
        self.negated = negated
        self.folds = folds

    def ranges(self) -> list[tuple[int, int]]:
        """Give the ranges, with the negation applied; folding apart."""
        pairs = list(zip(self._starts, self._ends, strict=True))
        return complement(pairs) if self.negated else pairs

    def has(self, char: str) -> bool:
        """Tell whether a character belongs to the set."""
        found = self._holds(ord(char))
        if not found and self.folds:
            found = any(len(c) == 1 and self._holds(ord(c)) for c in (char.lower(), char.upper()))
        return found != self.negated

    def _holds(self, code: int) -> bool:
        place = bisect_right(self._starts, code) - 1
        return place >= 0 and code <= self._ends[place]


def complement(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Give everything outside of sorted, separate ranges."""
    gaps: list[tuple[int, int]] = []
    at = 0
    for start, end in pairs:
        if start > at:
            gaps.append((at, start - 1))
        at = end + 1
    if at <= LAST:
        gaps.append((at, LAST))
    return gaps


@dataclass(frozen=True, slots=True)
class Chars:
    """One character of a set."""

    charset: Charset


@dataclass(frozen=True, slots=True)
class Assert:
    """A condition that takes no character."""

    anchor: Anchor


@dataclass(frozen=True, slots=True)
class Group:
    """A captured part."""

    number: int
    inner: "Tree"


@dataclass(frozen=True, slots=True)
class Sequence:
    """One after the other."""

    items: tuple["Tree", ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """The first alternative that fits."""

    items: tuple["Tree", ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """So many times; `most` None means without end."""

    inner: "Tree"
    least: int
    most: int | None
    lazy: bool


Tree: TypeAlias = Chars | Assert | Group | Sequence | Choice | Repeat
