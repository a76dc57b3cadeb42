"""The syntax tree of a regular expression."""

from bisect import bisect_right
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

LAST = 0x10FFFF


class BadPattern(ValueError):  # noqa: N818 - it becomes a problem
    """A pattern that Go's regexp refuses."""


class Anchor(StrEnum):
    """A condition between two characters."""

    TEXT_START = "\\A"
    TEXT_END = "\\z"
    LINE_START = "^"
    LINE_END = "$"
    BOUNDARY = "\\b"
    NO_BOUNDARY = "\\B"


class Charset:
    """A set of characters, as ranges of code points."""

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
        """Return the ranges with negation applied, but not case folding."""
        pairs = list(zip(self._starts, self._ends, strict=True))
        return complement(pairs) if self.negated else pairs

    def has(self, char: str) -> bool:
        """Return whether a character belongs to the set."""
        is_member = self._holds(ord(char))
        if not is_member and self.folds:
            is_member = any(
                len(c) == 1 and self._holds(ord(c)) for c in (char.lower(), char.upper())
            )
        return is_member != self.negated

    def _holds(self, code: int) -> bool:
        position = bisect_right(self._starts, code) - 1
        return position >= 0 and code <= self._ends[position]


def complement(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the complement of sorted, disjoint ranges."""
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
    """A zero-width assertion."""

    anchor: Anchor


@dataclass(frozen=True, slots=True)
class Group:
    """A capturing group."""

    number: int
    inner: "Tree"


@dataclass(frozen=True, slots=True)
class Sequence:
    """A concatenation."""

    items: tuple["Tree", ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """An alternation; the first alternative that matches wins."""

    items: tuple["Tree", ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """A repetition; `most` None means unbounded."""

    inner: "Tree"
    least: int
    most: int | None
    lazy: bool


Tree: TypeAlias = Chars | Assert | Group | Sequence | Choice | Repeat
