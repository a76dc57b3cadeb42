"""Masks secrets in a stream of bytes, however it is split into chunks."""

import json
import re
from collections.abc import Callable

from exclave.runner.logs.pattern_index import Needles as Needles
from exclave.runner.logs.pattern_index import NeedleSet, Span
from exclave.wire.jobs import JsonValue

MASK = b"***"

URL_LIMIT = 1024
"""The longest authority in which user info is searched; a longer one is masked as a whole."""
_SCHEME = b"://"
_AUTHORITY = re.compile(rb"[^\s/?#\"'<>]*")
_TRAILING_AUTHORITY = re.compile(rb"[^\s/?#\"'<>]{%d,}\Z" % URL_LIMIT)


class Masker:
    """Replaces secrets by `***`; holds back only what may be the beginning of a secret.

    Every byte of a match is masked; overlapping matches become one mask. The result
    does not depend on how the stream was split. The user info of URLs is always masked.
    """

    def __init__(self, needles: NeedleSet) -> None:
        self._needles = needles
        self._held = b""
        self._covered = 0
        """How many bytes of `_held` are covered by the last mask that was written."""
        self._overlong = False
        """Whether the stream is inside an overlong authority, which is masked."""

    @property
    def reach(self) -> int:
        """How many preceding bytes can determine whether a byte is masked."""
        return max(self._needles.longest, URL_LIMIT + len(_SCHEME) + 1)

    def use(self, needles: NeedleSet) -> None:
        """Use another set of patterns from now on, also for what is held back."""
        self._needles = needles

    def feed(self, data: bytes) -> bytes:
        """Add bytes; return what can be shown."""
        data = self._join(data)
        spans, open_at, overlong = _find_user_infos(data, ended=False)
        end = min(open_at, self._needles.first_open(data))
        for first, last in spans:
            if first - len(_SCHEME) < end < last <= first + URL_LIMIT:
                end = first - len(_SCHEME)  # user info is recognised by its scheme
        shown = self._cut(data, spans, end)
        self._overlong = self._overlong or overlong
        return shown

    def finish(self) -> bytes:
        """End the stream; return the rest."""
        data = self._join(b"")
        spans, _, _ = _find_user_infos(data, ended=True)
        shown = self._cut(data, spans, len(data))
        self._overlong = False
        return shown

    def drop_held(self) -> tuple[bytes, int]:
        """Drop what is held back; return it unmasked, and how much of it a mask covers."""
        held, hidden = self._held, min(self._covered, len(self._held))
        self._held, self._covered = b"", 0
        return held, hidden

    def skip(self, context: bytes) -> None:
        """Add context that is not shown but may begin a secret; only before the first `feed`."""
        self._covered = len(context)
        self.feed(context)
        # The scheme may be further back than the context reaches.
        self._overlong = self._overlong or _TRAILING_AUTHORITY.search(context) is not None

    def _join(self, data: bytes) -> bytes:
        """Return the held bytes followed by the data; an overlong authority continues in it."""
        seam = len(self._held)
        data = self._held + data
        if self._overlong:
            end = _end_of_authority(data, seam)
            self._covered = max(self._covered, end)
            self._overlong = end == len(data)
        return data

    def _cut(self, data: bytes, spans: list[Span], end: int) -> bytes:
        spans += self._needles.spans(data)
        covered = self._covered
        self._held = data[end:]
        if not spans and not covered:
            return data[:end]
        shown, covered = _write_masked(data, sorted(spans), end, covered)
        self._covered = max(0, covered - end)
        return shown


def mask_all(needles: NeedleSet, data: bytes) -> bytes:
    """Return complete bytes with secrets masked."""
    masker = Masker(needles)
    return masker.feed(data) + masker.finish()


def mask_text(needles: NeedleSet, text: str) -> str:
    """Return a complete text with secrets masked."""
    return mask_all(needles, text.encode(errors="replace")).decode(errors="replace")


Mask = Callable[[str], str]
"""Mask a text that leaves the runner."""


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


def _find_user_infos(data: bytes, *, ended: bool) -> tuple[list[Span], int, bool]:
    """Return the spans of user info in URLs, and the offset from which more may follow.

    The third value is true if the data ends inside an authority that is too long to wait for
    its end: all of it is masked, also in the following data.
    """
    spans: list[Span] = []
    overlong = False
    at = data.find(_SCHEME)
    while at >= 0:
        first = at + len(_SCHEME)
        last = _end_of_authority(data, first)
        if last - first > URL_LIMIT:
            spans.append((first, last))
            overlong = last == len(data)
        elif last == len(data) and not ended:
            return spans, at, False
        elif (sign := data.rfind(b"@", first, last)) > first:
            spans.append((first, sign))
        at = data.find(_SCHEME, first)
    for size in (2, 1):
        if data.endswith(_SCHEME[:size]) and not ended:
            return spans, len(data) - size, overlong
    return spans, len(data), overlong


def _end_of_authority(data: bytes, first: int) -> int:
    match = _AUTHORITY.match(data, first)
    return match.end() if match else first


def mask_json(value: JsonValue, mask: Mask) -> JsonValue:
    """Return a JSON value with every text, key and number in it masked."""
    match value:
        case str():
            return mask(value)
        case dict():
            return {mask(key): mask_json(part, mask) for key, part in value.items()}
        case list():
            return [mask_json(part, mask) for part in value]
        case bool() | None:
            return value
        case _:
            return mask_number(value, mask)


def mask_number(value: float, mask: Mask) -> JsonValue:
    """Return a number, or a mask if it is or contains a secret, such as a PIN."""
    text = json.dumps(value)
    masked = mask(text)
    return value if masked == text else masked
