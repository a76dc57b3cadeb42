"""A scan before parsing: the standard library's TOML parser is quadratic in dotted keys.

The scan reads each character once. It need not handle invalid TOML: where it stops, the parser
stops too, and has read only what was scanned.
"""

import re

MOST_PARTS = 32
"""Parts of one dotted key; nothing in an app directory has more than five."""

_NEXT = re.compile(r"[^\"'#A-Za-z0-9_\-]*")
_COMMENT = re.compile(r"#[^\n]*")
_BARE = re.compile(r"[A-Za-z0-9_\-]+")
_LINK = re.compile(r"[ \t]*\.[ \t]*")
_LITERAL = re.compile(r"'[^'\n]*'")
_IN_BASIC = re.compile(r'\\[^\n]|["\n]')
_IN_LONG_BASIC = re.compile(r'\\.|"""', re.DOTALL)


def find_long_key(text: str) -> int | None:
    """Return the offset of the first key with too many parts; a key never spans lines."""
    if all(line.count(".") < MOST_PARTS for line in text.split("\n")):
        return None
    at, parts, start = 0, 0, 0
    while True:
        if not parts:
            at = start = _skip(_NEXT, text, at)
        if at >= len(text):
            return None
        end = _skip_word(text, at)
        if end is None:
            return None
        parts += 1
        if parts > MOST_PARTS:
            return start
        link = _LINK.match(text, end)
        at = end if link is None else link.end()
        if link is None or at >= len(text) or not _WORD.match(text, at):
            parts = 0


_WORD = re.compile(r"[\"'A-Za-z0-9_\-]")


def _skip_word(text: str, at: int) -> int | None:
    """Return the end of a comment, string or word; None if it is not terminated."""
    match text[at]:
        case "#":
            return _skip(_COMMENT, text, at)
        case '"' if text.startswith('"""', at):
            return _find_end(_IN_LONG_BASIC, text, at + 3)
        case "'" if text.startswith("'''", at):
            end = text.find("'''", at + 3)
            return None if end < 0 else end + 3
        case '"':
            return _find_end(_IN_BASIC, text, at + 1)
        case "'":
            match = _LITERAL.match(text, at)
            return None if match is None else match.end()
        case _:
            return _skip(_BARE, text, at)


def _skip(form: re.Pattern[str], text: str, at: int) -> int:
    match = form.match(text, at)
    return at if match is None else match.end()


def _find_end(form: re.Pattern[str], text: str, at: int) -> int | None:
    for match in form.finditer(text, at):
        if match[0].startswith('"'):
            return match.end()
        if match[0] == "\n":
            return None
    return None
