"""A search for many byte strings at once, at a cost that hardly depends on their number."""

import sys
from collections.abc import Iterable, Sequence
from typing import Literal, Protocol

from exclave.runner.logs.secret_spellings import MIN_LENGTH

_FEW = 32
"""Up to this number, short needles are searched one by one, which is cheaper."""

Span = tuple[int, int]


class NeedleSet(Protocol):
    """A set of byte strings to search for."""

    @property
    def longest(self) -> int:
        """The length of the longest needle."""
        ...

    def spans(self, data: bytes) -> list[Span]:
        """Return the span of every match, including overlaps."""
        ...

    def first_open(self, data: bytes) -> int:
        """Return the first offset from which the rest of the data may begin a needle."""
        ...


class _Words:
    """Needles, indexed by the machine words near their beginning.

    The data is read as words at fixed distances. Wherever a needle occurs, one of those words is
    within it, at one of the first offsets. So one intersection of two sets, done in C, finds which
    needles can be there at all; only those are compared.
    """

    def __init__(
        self, kind: Literal["Q", "I"], size: int, offsets: int, shifts: Sequence[int]
    ) -> None:
        self._kind = kind
        self._size = size
        self._offsets = offsets
        self._shifts = shifts
        self._places: dict[int, list[tuple[int, bytes]]] = {}

    @property
    def shortest(self) -> int:
        """The length from which a needle always contains a word."""
        return self._offsets + self._size - 1

    def add(self, needle: bytes) -> None:
        """Add a needle, of the shortest length or more."""
        for offset in range(self._offsets):
            word = int.from_bytes(needle[offset : offset + self._size], sys.byteorder)
            self._places.setdefault(word, []).append((offset, needle))

    def find(self, data: bytes, first: int = 0) -> list[tuple[int, bytes]]:
        """Return where needles may occur: a word of each matches, the rest has to be compared."""
        if not self._places:
            return []
        places = []
        for word in self._list_hits(data, first):
            text = word.to_bytes(self._size, sys.byteorder)
            at = data.find(text, first)
            while at >= 0:
                places += [(at - offset, needle) for offset, needle in self._places[word]]
                at = data.find(text, at + 1)
        return places

    def _list_hits(self, data: bytes, first: int) -> set[int]:
        hits: set[int] = set()
        view = memoryview(data)
        for shift in self._shifts:
            begin = first + shift
            count = (len(data) - begin) // self._size
            if count > 0:
                words = view[begin : begin + count * self._size].cast(self._kind)
                hits |= self._places.keys() & words.tolist()
        return hits


class Needles:
    """The byte strings to hide, arranged for search."""

    def __init__(self, needles: Iterable[bytes] = ()) -> None:
        wanted = {needle for needle in needles if len(needle) >= MIN_LENGTH}
        self._long = _Words("Q", 8, 8, (0,))
        self._short = _Words("I", 4, 2, (0, 2))
        self._few = [needle for needle in wanted if len(needle) < self._long.shortest]
        if len(self._few) > _FEW:
            for needle in self._few:
                self._short.add(needle)
            self._few = []
        self._heads: dict[bytes, list[bytes]] = {}
        for needle in wanted:
            if len(needle) >= self._long.shortest:
                self._long.add(needle)
            self._heads.setdefault(needle[:MIN_LENGTH], []).append(needle)
        self._short_heads = {head[:size] for head in self._heads for size in range(1, MIN_LENGTH)}
        self.longest = max((len(needle) for needle in wanted), default=0)

    def spans(self, data: bytes) -> list[Span]:
        """Return the span of every match, including overlaps."""
        spans = {
            (at, at + len(needle))
            for words in (self._long, self._short)
            for at, needle in words.find(data)
            if at >= 0 and data.startswith(needle, at)
        }
        for needle in self._few:
            at = data.find(needle)
            while at >= 0:
                spans.add((at, at + len(needle)))
                at = data.find(needle, at + 1)
        return list(spans)

    def first_open(self, data: bytes) -> int:
        """Return the first offset from which the rest of the data may begin a needle."""
        size = len(data)
        offsets = [size]
        for at, needle in self._long.find(data, max(0, size - self.longest + 1)):
            if 0 <= at < size < at + len(needle) and needle.startswith(data[at:]):
                offsets.append(at)
        # A shorter beginning may not contain a whole word.
        for at in range(max(0, size - self._long.shortest + 1), size):
            rest = data[at:]
            if rest in self._short_heads or any(
                len(needle) > len(rest) and needle.startswith(rest)
                for needle in self._heads.get(rest[:MIN_LENGTH], ())
            ):
                offsets.append(at)
                break
        return min(offsets)


class Joined:
    """A union of several sets of needles."""

    def __init__(self, *parts: NeedleSet) -> None:
        self._parts = [part for part in parts if part.longest]

    @property
    def longest(self) -> int:
        """The length of the longest needle."""
        return max((part.longest for part in self._parts), default=0)

    def spans(self, data: bytes) -> list[Span]:
        """Return the span of every match, including overlaps."""
        return [span for part in self._parts for span in part.spans(data)]

    def first_open(self, data: bytes) -> int:
        """Return the first offset from which the rest of the data may begin a needle."""
        return min((part.first_open(data) for part in self._parts), default=len(data))


_NOTHING = Needles()


def find_nothing() -> NeedleSet:
    """Return an empty set: nothing is to be masked."""
    return _NOTHING
