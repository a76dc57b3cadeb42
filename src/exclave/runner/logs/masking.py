"""Masks secrets in a stream of bytes, wherever the stream happens to be cut into chunks."""

import re
from collections.abc import Iterable

from exclave.runner.logs.needles import MIN_LENGTH

MASK = b"***"

URL_LIMIT = 1024
"""How many bytes after `://` are looked at for user info."""
_SCHEME = b"://"
_AUTHORITY = re.compile(rb"[^\s/?#\"'<>]{0,%d}" % URL_LIMIT)

Span = tuple[int, int]


class Needles:
    """The byte strings to hide, arranged for search.

    A needle that begins with another one is looked for only where the shorter one was found.
    """

    def __init__(self, needles: Iterable[bytes] = ()) -> None:
        ordered = sorted({needle for needle in needles if len(needle) >= MIN_LENGTH})
        self._longer: dict[bytes, list[bytes]] = {}
        root = b""
        for needle in ordered:  # sorted: all that begin with a root follow it directly
            if root and needle.startswith(root):
                self._longer[root].append(needle)
            else:
                root = needle
                self._longer[root] = []
        followers = [*ordered[1:], b""]
        self._ends = [
            needle
            for needle, follower in zip(ordered, followers, strict=False)
            if not follower.startswith(needle)
        ]
        self._short_heads = {
            needle[:size] for needle in self._longer for size in range(1, MIN_LENGTH)
        }
        self.longest = max((len(needle) for needle in ordered), default=0)

    def spans(self, data: bytes) -> list[Span]:
        """Find every place where a needle stands, overlaps included."""
        found: list[Span] = []
        for root, longer in self._longer.items():
            at = data.find(root)
            while at >= 0:
                end = at + len(root)
                for needle in longer:
                    if data.startswith(needle, at):
                        end = max(end, at + len(needle))
                found.append((at, end))
                at = data.find(root, at + 1)
        return found

    def first_open(self, data: bytes) -> int:
        """Find the first place from which on the data may be the beginning of a needle."""
        size = len(data)
        best = size
        for short in range(min(MIN_LENGTH - 1, size), 0, -1):
            if data[-short:] in self._short_heads:
                best = size - short
                break
        for needle in self._ends:
            head = needle[:MIN_LENGTH]
            at = data.find(head, max(0, size - len(needle) + 1))
            while 0 <= at < best:
                if needle.startswith(data[at:]):
                    best = at
                at = data.find(head, at + 1)
        return best


class Masker:
    """Replaces what is hidden by `***`; holds back only what may be the beginning of a secret.

    Every byte that any needle covers is hidden; needles that overlap become one mask. The result
    does not depend on how the stream was cut. The user info of URLs is hidden always.
    """

    def __init__(self, needles: Needles) -> None:
        self._needles = needles
        self._held = b""
        self._covered = 0
        """How far into `_held` the last mask that was written reaches."""

    @property
    def reach(self) -> int:
        """How many bytes before a place can decide about the byte at that place."""
        return max(self._needles.longest, URL_LIMIT + len(_SCHEME))

    def use(self, needles: Needles) -> None:
        """Hide other things from here on; what was held back is judged anew."""
        self._needles = needles

    def feed(self, data: bytes) -> bytes:
        """Take the next bytes of the stream; return what can be shown by now."""
        data = self._held + data
        spans, open_at = _find_user_infos(data, ended=False)
        end = min(open_at, self._needles.first_open(data))
        for first, last in spans:
            if first - len(_SCHEME) < end < last:
                end = first - len(_SCHEME)  # without its scheme the rest would be no user info
        return self._cut(data, spans, end)

    def finish(self) -> bytes:
        """Return the rest: the stream ends here."""
        spans, _ = _find_user_infos(self._held, ended=True)
        return self._cut(self._held, spans, len(self._held))

    def take_held(self) -> tuple[bytes, int]:
        """Give up what is held back; return it raw, and how much of it a mask stands for."""
        held, hidden = self._held, min(self._covered, len(self._held))
        self._held, self._covered = b"", 0
        return held, hidden

    def skip(self, context: bytes) -> None:
        """Take bytes that are not shown but tell where secrets begin; only at a fresh start."""
        self._covered = len(context)
        self.feed(context)

    def _cut(self, data: bytes, spans: list[Span], end: int) -> bytes:
        spans += self._needles.spans(data)
        covered = self._covered
        self._held = data[end:]
        if not spans and not covered:
            return data[:end]
        shown, covered = _write_masked(data, sorted(spans), end, covered)
        self._covered = max(0, covered - end)
        return shown


def mask_all(needles: Needles, data: bytes) -> bytes:
    """Mask a whole text."""
    masker = Masker(needles)
    return masker.feed(data) + masker.finish()


def _write_masked(data: bytes, spans: list[Span], end: int, covered: int) -> tuple[bytes, int]:
    parts: list[bytes] = []
    for first, last in spans:
        if first >= end:
            break
        if first >= covered:
            parts += (data[covered:first], MASK)
        covered = max(covered, last)
    parts.append(data[covered:end])
    return b"".join(parts), covered


def _find_user_infos(data: bytes, *, ended: bool) -> tuple[list[Span], int]:
    """Find the user info of URLs, and from where on a URL may still get some."""
    spans: list[Span] = []
    at = data.find(_SCHEME)
    while at >= 0:
        first = at + len(_SCHEME)
        match = _AUTHORITY.match(data, first)
        last = match.end() if match else first
        if last == len(data) and last - first < URL_LIMIT and not ended:
            return spans, at
        sign = data.rfind(b"@", first, last)
        if sign > first:
            spans.append((first, sign))
        at = data.find(_SCHEME, first)
    for size in (2, 1):
        if data.endswith(_SCHEME[:size]):
            return spans, len(data) - size
    return spans, len(data)
