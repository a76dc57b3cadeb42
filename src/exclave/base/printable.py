"""Escaping of untrusted text for terminals and logs: control characters become visible."""

import json
import re

_NOT_ASCII = re.compile(r"[^\n -~]")


def escape_controls(text: str) -> str:
    r"""Return text in which only printable characters, `\n` and `\t` are left as they are.

    Everything else is written as an escape such as `\x1b`: C0 and C1 controls, DEL, bidirectional
    and other invisible format characters, lone surrogates (which no stream can encode).
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else ascii(c)[1:-1] for c in text)


def escape_line(text: str) -> str:
    r"""Return text as one line: as `escape_controls`, but `\n` and `\t` are written out too."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def dump_json(value: object, *, indent: int | None = None) -> str:
    """Return JSON that is readable (not all ASCII) and holds no raw control character."""
    text = json.dumps(value, indent=indent, ensure_ascii=False, default=str)
    return _NOT_ASCII.sub(_escape_for_json, text)


def _escape_for_json(match: re.Match[str]) -> str:
    return match[0] if match[0].isprintable() else json.dumps(match[0])[1:-1]
