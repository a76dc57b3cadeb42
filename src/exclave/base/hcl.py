"""Writes HCL: text of others becomes a quoted string or is refused, never code."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_NAME = re.compile(r"(?![\d-])[\w-]+")
_NOT_PLAIN = re.compile(r'["\\]|[^ -~]')
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"', "\\": "\\\\"}
_BMP = 0xFFFF


@dataclass(frozen=True, slots=True)
class Attribute:
    """A step of a traversal: `.name`."""

    name: str


@dataclass(frozen=True, slots=True)
class Index:
    """A step of a traversal: `[0]` or `["key"]`."""

    key: int | str


Traversal = tuple[Attribute | Index, ...]


def quote(text: str) -> str:
    """Return a quoted string that means exactly this text."""
    return f'"{escape(text)}"'


def escape(text: str) -> str:
    """Return text for the inside of a quoted string."""
    return escape_template(_NOT_PLAIN.sub(_escape_character, text))


def escape_template(text: str) -> str:
    """Return text for the inside of a heredoc, where only templates mean something."""
    return text.replace("${", "$${").replace("%{", "%%{")


def write_traversal(steps: Traversal) -> str:
    """Return a reference such as `module.a["k"].b`; `ValueError` if a name is not an identifier."""
    text = ""
    for step in steps:
        match step:
            case Attribute(name):
                text += f".{_check_name(name)}" if text else _check_name(name)
            case Index(int(key)):
                text += f"[{key}]"
            case Index(str(key)):
                text += f"[{quote(key)}]"
    return text


def write_block(kind: str, body: Mapping[str, str | Traversal], labels: Sequence[str] = ()) -> str:
    """Return a block; in its body, texts become quoted strings and traversals references."""
    head = " ".join([_check_name(kind), *map(quote, labels)])
    lines = [f"  {_check_name(name)} = {_write_value(value)}" for name, value in body.items()]
    return "\n".join([f"{head} {{", *lines, "}", ""])


def is_name(text: str) -> bool:
    """Return whether text is an identifier."""
    return _NAME.fullmatch(text) is not None


def _write_value(value: str | Traversal) -> str:
    return quote(value) if isinstance(value, str) else write_traversal(value)


def _check_name(name: str) -> str:
    if not is_name(name):
        message = f"{name!a} is not an identifier"
        raise ValueError(message)
    return name


def _escape_character(match: re.Match[str]) -> str:
    character = match[0]
    if character in _SHORT:
        return _SHORT[character]
    if character.isprintable():
        return character
    number = ord(character)
    if "\ud800" <= character <= "\udfff":
        return "\\uFFFD"  # a lone half of a surrogate pair is invalid
    return f"\\u{number:04x}" if number <= _BMP else f"\\U{number:08x}"
