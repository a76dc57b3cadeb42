"""Texts of vendors in Terraform, in whose JSON every text is a template."""

_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_PRINTABLE = 0x20


def escape(text: str) -> str:
    """Return a text for a template in which nothing is an expression."""
    return text.replace("${", "$${").replace("%{", "%%{")


def quote(text: str) -> str:
    """Return a text for between quotes in an expression."""
    return "".join(_quote_character(character) for character in escape(text))


def _quote_character(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    return f"\\u{ord(character):04x}" if ord(character) < _PRINTABLE else character
