"""Go's quoted forms of strings and characters."""

from exclave.template.text import is_raw_byte, to_bytes

_SHORT = {7: "\\a", 8: "\\b", 12: "\\f", 10: "\\n", 13: "\\r", 9: "\\t", 11: "\\v", 92: "\\\\"}
_BASIC_PLANE = 0xFFFF
_DELETE = 0x7F
_REPLACEMENT = 0xFFFD
_BYTE_ORDER_MARK = "\ufeff"


def quote(text: str, *, ascii_only: bool = False) -> str:
    """Return a text in double quotes, as `%q` does."""
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return '"' + "".join(_escape(char, '"', ascii_only=ascii_only) for char in text) + '"'


def quote_char(code: int, *, ascii_only: bool = False) -> str:
    """Return a character in single quotes; an invalid code point is the replacement character."""
    return f"'{_escape(to_char(code), chr(39), ascii_only=ascii_only)}'"


def to_char(code: int) -> str:
    """Return the character with this code point, or the replacement character."""
    if 0 <= code <= 0x10FFFF and not 0xD800 <= code < 0xE000:  # noqa: PLR2004 - the range of Unicode
        return chr(code)
    return chr(_REPLACEMENT)


def can_backquote(text: str) -> bool:
    """Return whether a text can be a raw string literal unchanged."""
    return not any(
        char in ("`", _BYTE_ORDER_MARK)
        or is_raw_byte(char)
        or (char < " " and char != "\t")
        or ord(char) == _DELETE
        for char in text
    )


def to_hex(text: str, *, upper: bool, limit: int | None, spaced: bool, sharp: bool) -> str:
    """Return the bytes of a text in hexadecimal."""
    data = to_bytes(text)
    pairs = [f"{byte:02X}" if upper else f"{byte:02x}" for byte in data[:limit]]
    prefix = ("0X" if upper else "0x") if sharp and pairs else ""
    if spaced:
        return " ".join(prefix + pair for pair in pairs)
    return prefix + "".join(pairs)


def _escape(char: str, mark: str, *, ascii_only: bool) -> str:
    code = ord(char)
    if char == mark:
        return "\\" + char
    if code in _SHORT:
        return _SHORT[code]
    if is_raw_byte(char):
        return f"\\x{code - 0xDC00:02x}"
    if char.isascii():
        return char if char.isprintable() else f"\\x{code:02x}"
    if char.isprintable() and not ascii_only:
        return char
    return f"\\u{code:04x}" if code <= _BASIC_PLANE else f"\\U{code:08x}"
