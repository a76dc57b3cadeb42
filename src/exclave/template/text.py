"""Go strings as Python strings: a byte that is not UTF-8 is kept as a surrogate escape."""

_ESCAPED = "surrogateescape"


def to_bytes(text: str) -> bytes:
    """Return the bytes of a text, including bytes that are not UTF-8."""
    try:
        return text.encode("utf-8", _ESCAPED)
    except UnicodeEncodeError:
        return clean(text).encode("utf-8", _ESCAPED)


def to_text(data: bytes) -> str:
    """Return any bytes as a text; `to_bytes` is the inverse."""
    return data.decode("utf-8", _ESCAPED)


def clean(text: str) -> str:
    """Return the text with lone surrogates replaced by the replacement character."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def finish(text: str) -> str:
    """Return valid Unicode: bytes that are not UTF-8 become the replacement character."""
    return text if text.isascii() else to_bytes(text).decode("utf-8", "replace")


def size(text: str) -> int:
    """Return the number of bytes, as Go's `len` does."""
    return len(text) if text.isascii() else len(to_bytes(text))


def is_raw_byte(char: str) -> bool:
    """Return whether a character stands for a byte that is not UTF-8."""
    return 0xDC80 <= ord(char) <= 0xDCFF  # noqa: PLR2004 - where Python puts such bytes
