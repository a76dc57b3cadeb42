"""Go's strings are bytes: inside a rendering, a byte that is not UTF-8 is kept as an escape."""

_ESCAPED = "surrogateescape"


def to_bytes(text: str) -> bytes:
    """Give the bytes of a text, including bytes that were cut out of a character."""
    try:
        return text.encode("utf-8", _ESCAPED)
    except UnicodeEncodeError:
        return clean(text).encode("utf-8", _ESCAPED)


def to_text(data: bytes) -> str:
    """Hold any bytes as a text; `to_bytes` gives them back."""
    return data.decode("utf-8", _ESCAPED)


def clean(text: str) -> str:
    """Replace what is no character at all (a lone surrogate) by the replacement character."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def finish(text: str) -> str:
    """Give the text to the world: bytes that are not UTF-8 become the replacement character."""
    return text if text.isascii() else to_bytes(text).decode("utf-8", "replace")


def size(text: str) -> int:
    """Count bytes, as Go's `len` does."""
    return len(text) if text.isascii() else len(to_bytes(text))


def is_raw_byte(char: str) -> bool:
    """Tell whether a character stands for a byte that is not UTF-8."""
    return 0xDC80 <= ord(char) <= 0xDCFF  # noqa: PLR2004 - where Python puts such bytes
