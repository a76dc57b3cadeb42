"""Byte patterns to mask for a secret: raw, base64, hex, URL-, shell-, JSON- and XML-escaped."""

import base64
import html
import json
import re
import shlex
from collections.abc import Iterable, Iterator
from urllib.parse import quote, quote_plus
from xml.sax.saxutils import escape

MIN_LENGTH = 6
"""Shorter values are not masked: they would hide half of every log and still be guessed."""

_BITS_OF_BYTE = 8
_BITS_OF_DIGIT = 6
_WRAPS = (76, 64)
"""Where `base64` and PEM break their lines."""
_UNSAFE_IN_SHELL = re.compile(r"([^\w@%+=:,./\n-])", re.ASCII)
_PERCENT = re.compile("%[0-9A-F]{2}")
_MOST_WRITTEN = 64 * 1024
"""Longer values are searched only as they are and line by line, to save memory."""
_DUMP_WIDTHS = (16, 15)
"""How many bytes `od` and `openssl` print per line."""


def is_maskable(value: str) -> bool:
    """Return whether a value is long enough to be masked."""
    return len(value.strip().encode(errors="replace")) >= MIN_LENGTH


def find_needles(values: Iterable[str]) -> frozenset[bytes]:
    """Return all patterns to mask for these values."""
    needles: set[bytes] = set()
    for value in values:
        if is_maskable(value):
            for text in {value, value.strip()}:
                needles.update(_write_every_way(text))
    return frozenset(needle for needle in needles if len(needle) >= MIN_LENGTH)


def find_key_needles(key: bytes) -> frozenset[bytes]:
    """Return all patterns to mask for a binary key."""
    needles = {key, *_write_hex(key), *_write_base64(key)}
    # How programs print the bytes when they read them as text.
    needles |= {key.decode("latin-1").encode(), key.decode(errors="replace").encode()}
    for sign in (":", " "):
        for width in _DUMP_WIDTHS:
            rows = (key[at : at + width] for at in range(0, len(key), width))
            needles |= {row.hex(sign).encode() for row in rows if len(row) >= MIN_LENGTH}
    return frozenset(needle for needle in needles if len(needle) >= MIN_LENGTH)


def _write_every_way(text: str) -> Iterator[bytes]:
    raw = text.encode(errors="replace")
    yield raw
    lines = text.splitlines()
    if len(lines) > 1:
        yield from (line.strip().encode(errors="replace") for line in lines)
    if len(raw) > _MOST_WRITTEN:
        return
    yield from _write_hex(raw)
    yield from _write_base64(raw)
    for form in (*_quote(text), *_escape(text)):
        yield form.encode(errors="replace")


def _write_hex(raw: bytes) -> Iterator[bytes]:
    yield raw.hex().encode()
    yield raw.hex().upper().encode()


def _write_base64(raw: bytes) -> Iterator[bytes]:
    for shift in range(3):
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            written = encode(bytes(shift) + raw)
            first = -(-shift * _BITS_OF_BYTE // _BITS_OF_DIGIT)
            last = (shift + len(raw)) * _BITS_OF_BYTE // _BITS_OF_DIGIT
            # In mid-text the last digit depends on what follows; at the end there is padding,
            # which would reveal the length.
            yield written[first:last]
            yield written[first:].rstrip(b"=")
            yield written[first:]
    written = base64.b64encode(raw)
    for width in _WRAPS:
        if len(written) > width:
            yield from (written[at : at + width] for at in range(0, len(written), width))


def _quote(text: str) -> Iterator[str]:
    safe = text.encode(errors="replace").decode()
    for form in (quote(safe, safe=""), quote(safe), quote_plus(safe)):
        yield form
        yield _PERCENT.sub(lambda match: match[0].lower(), form)
    yield shlex.quote(safe)[1:-1] if shlex.quote(safe) != safe else safe
    yield safe.replace("'", "'\\''")
    yield _UNSAFE_IN_SHELL.sub(r"\\\1", safe)


def _escape(text: str) -> Iterator[str]:
    for form in (json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]):
        yield form
        yield _escape_html_in_json(form)
    yield repr(text)[1:-1]
    yield escape(text)
    yield escape(text, {'"': "&quot;", "'": "&apos;"})
    yield html.escape(text)
    yield escape(text, {'"': "&#34;", "'": "&#39;"})


def _escape_html_in_json(form: str) -> str:
    for sign in "<>&":
        form = form.replace(sign, f"\\u{ord(sign):04x}")
    return form
