"""Go literals: quoted strings, characters and numbers."""

import re
from dataclasses import dataclass

from exclave.template.text import to_text

MAX_INT = (1 << 63) - 1
MIN_INT = -(1 << 63)

_ESCAPES = {
    "a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11, "\\": 92, "'": 39, '"': 34,
}  # fmt: skip
_WIDTHS = {"x": 2, "u": 4, "U": 8}
_SURROGATES = range(0xD800, 0xE000)
_LAST_RUNE = 0x10FFFF
_LAST_BYTE = 0xFF

_DECIMAL = re.compile(r"[+-]?(?:0|[1-9](?:_?[0-9])*)\Z")
_BASED = re.compile(
    r"([+-]?)0(?:[xX]((?:_?[0-9a-fA-F])+)|[bB]((?:_?[01])+)|[oO]((?:_?[0-7])+)|((?:_?[0-7])+))\Z"
)
_DIGITS = "[0-9](?:_?[0-9])*"
_REAL = re.compile(rf"[+-]?(?:{_DIGITS}\.?(?:{_DIGITS})?|\.{_DIGITS})(?:[eE][+-]?{_DIGITS})?\Z")
_HEX = "[0-9a-fA-F](?:_?[0-9a-fA-F])*"
_HEX_REAL = re.compile(rf"[+-]?0[xX]_?(?:{_HEX}\.?(?:{_HEX})?|\.{_HEX})[pP][+-]?{_DIGITS}\Z")
_LONGEST = 400
"""Digits of a number; a longer one is not worth converting."""


class BadLiteral(ValueError):  # noqa: N818 - it becomes a problem
    """A literal that Go refuses too."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """A number as each of Go's kinds that can hold it."""

    integer: int | None
    real: float | None
    ideal: int | float | None


def unquote(text: str) -> str:
    """Return the value of a quoted or raw string literal."""
    if text.startswith("`"):
        return text[1:-1].replace("\r", "")
    body = text[1:-1]
    if "\\" not in body:
        return body
    data = bytearray()
    at = 0
    while at < len(body):
        if body[at] == "\\":
            piece, at = _read_escape(body, at + 1, '"')
            data += piece
        else:
            data += body[at].encode("utf-8", "replace")
            at += 1
    return to_text(bytes(data))


def _read_escape(body: str, at: int, quote: str) -> tuple[bytes, int]:
    """Return the bytes of an escape sequence and the offset of its end."""
    char = body[at : at + 1]
    if char in _ESCAPES and char and (char not in "'\"" or char == quote):
        return bytes([_ESCAPES[char]]), at + 1
    if char in _WIDTHS and char:
        end = at + 1 + _WIDTHS[char]
        number = _read_digits(body[at + 1 : end], 16, _WIDTHS[char])
        if char == "x":
            return bytes([number]), end
        if number > _LAST_RUNE or number in _SURROGATES:
            raise BadLiteral("this escape is not a character")
        return chr(number).encode(), end
    number = _read_digits(body[at : at + 3], 8, 3)
    if number > _LAST_BYTE:
        raise BadLiteral("an octal escape goes up to \\377")
    return bytes([number]), at + 3


def _read_digits(digits: str, base: int, length: int) -> int:
    allowed = "01234567" if base == 8 else "0123456789abcdefABCDEF"  # noqa: PLR2004 - octal
    if len(digits) != length or not set(digits) <= set(allowed):
        raise BadLiteral("unknown escape in a string")
    return int(digits, base)


def parse_char(text: str) -> int:
    """Return the code point of a character literal."""
    body = text[1:-1]
    if body.startswith("\\"):
        piece, end = _read_escape(body, 1, "'")
        if end == len(body):
            return piece[0] if len(piece) == 1 else ord(piece.decode())
    elif len(body) == 1 and body != "'":
        return ord(body)
    raise BadLiteral(f"malformed character constant: {text}")


def parse_number(text: str) -> Parsed:
    """Return a number literal as an integer, a float, or both, as Go does."""
    if len(text) > _LONGEST:
        raise BadLiteral("this number is too long")
    integer = parse_integer(text)
    if integer is not None:
        fits = MIN_INT <= integer <= MAX_INT
        if not fits and not 0 <= integer < 1 << 64:
            raise BadLiteral(f"integer overflow: {text}")
        return Parsed(integer if fits else None, float(integer), integer if fits else None)
    real = parse_real(text)
    if real is None:
        raise BadLiteral(f"bad number syntax: {text}")
    if not set(text) & set(".eEpP"):
        raise BadLiteral(f"integer overflow: {text}")
    whole = int(real) if real.is_integer() and MIN_INT <= real <= MAX_INT else None
    return Parsed(whole, real, real)


def parse_integer(text: str) -> int | None:
    """Return an integer literal (Go's base prefixes; a leading zero means octal), or None."""
    if _DECIMAL.match(text):
        return int(text.replace("_", ""))
    based = _BASED.match(text)
    if based is None:
        return None
    sign = -1 if based[1] == "-" else 1
    for group, base in ((2, 16), (3, 2), (4, 8), (5, 8)):
        if based[group] is not None:
            return sign * int(based[group].replace("_", ""), base)
    return None


def parse_real(text: str) -> float | None:
    """Return a decimal or hexadecimal float literal; None if it is not one or is too large."""
    plain = text.replace("_", "")
    if _REAL.match(text):
        number = float(plain)
    elif _HEX_REAL.match(text):
        try:
            number = float.fromhex(plain)
        except OverflowError:
            return None
    else:
        return None
    return None if number in (float("inf"), float("-inf")) else number
