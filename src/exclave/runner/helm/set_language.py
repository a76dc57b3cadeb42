"""The language of `helm --set`: dots nest, `a[0]` are lists, `{x,y}` is one, commas separate.

Helm parses it without types but for `true`, `false`, `null` and whole numbers. What it accepts has
the same meaning here; a test compares both.
"""

import re
from typing import Final, NoReturn

from exclave.base.json_values import Json

_MOST_NESTED: Final = 30
_LARGEST_INDEX: Final = 65_536
_INTEGER: Final = re.compile(r"[-+]?[1-9][0-9]*|-0+|\+0+|[-+]0[0-9]+")
_SMALLEST, _LARGEST = -(1 << 63), (1 << 63) - 1
_WORDS: Final = {"true": True, "false": False, "null": None}


class SetRefused(ValueError):  # noqa: N818 - says what happened
    """An expression that Helm would not accept."""


def set_values(target: dict[str, Json], expression: str) -> None:
    """Set what an expression such as `a.b=1,c={x,y}` names in a document of values."""
    reader = _Reader(expression)
    try:
        while not reader.is_at_end():
            _read_key(reader, target, 0)
    except SetRefused as refused:
        message = f"`{expression[:200]}` cannot be set: {refused}"
        raise SetRefused(message) from refused


class _Reader:
    """The characters of an expression, one after the other."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def is_at_end(self) -> bool:
        """Return whether nothing is left."""
        return self._at >= len(self._text)

    def accept(self, character: str) -> bool:
        """Step over a character if it is the next one."""
        if self._text[self._at : self._at + 1] != character:
            return False
        self._at += 1
        return True

    def read_until(self, stops: str) -> tuple[str, str]:
        """Return the text up to one of the characters, and that one; none at the end."""
        text = ""
        while not self.is_at_end():
            character = self._text[self._at]
            self._at += 1
            if character in stops:
                return text, character
            if character == "\\":
                if self.is_at_end():
                    return text, ""
                character = self._text[self._at]
                self._at += 1
            text += character
        return text, ""


def _read_key(reader: _Reader, target: dict[str, Json], depth: int) -> None:
    name, stop = reader.read_until("=[,.")
    match stop:
        case "[":
            index = _read_index(reader)
            items = target.get(name, [])
            if not isinstance(items, list):
                _refuse(f"`{name}` is not a list")
            _set(target, name, _read_item(reader, items, index, depth))
        case "=":
            _set(target, name, _read_value(reader))
        case ".":
            _read_inner(reader, target, name, depth + 1)
        case "":
            if name:
                _refuse(f"`{name}` has no value")
        case _:
            _refuse(f"`{name}` has no value and is followed by a comma")


def _read_inner(reader: _Reader, target: dict[str, Json], name: str, depth: int) -> None:
    if depth > _MOST_NESTED:
        _refuse(f"it is nested deeper than {_MOST_NESTED} levels")
    inner = target.get(name, {})
    if not isinstance(inner, dict):
        _refuse(f"`{name}` is not a mapping")
    _read_key(reader, inner, depth)
    if not inner:
        _refuse(f"`{name}` has no value")
    _set(target, name, inner)


def _read_index(reader: _Reader) -> int:
    text, stop = reader.read_until("]")
    if not stop or not re.fullmatch(r"[-+]?[0-9]+", text):
        _refuse(f"`{text}` is not an index of a list")
    index = int(text)
    if not 0 <= index <= _LARGEST_INDEX:
        _refuse(f"{index} is not an index of a list")
    return index


def _read_item(reader: _Reader, items: list[Json], index: int, depth: int) -> list[Json]:
    """Return the list with one item set to what follows `[index]`."""
    name, stop = reader.read_until("[.=")
    if name:
        _refuse(f"`{name}` follows the index of a list")
    existing = items[index] if index < len(items) else None
    value: Json
    match stop:
        case "=":
            value = _read_value(reader)
        case "[":
            nested = [] if existing is None else existing
            if not isinstance(nested, list):
                _refuse(f"the item {index} is not a list")
            value = _read_item(reader, nested, _read_index(reader), depth)
        case ".":
            inner = existing if isinstance(existing, dict) else {}
            _read_key(reader, inner, depth)
            value = inner
        case _:
            _refuse("a list item has no value")
    gap = [None] * (index - len(items))
    return [*items[:index], *gap, value, *items[index + 1 :]]


def _read_value(reader: _Reader) -> Json:
    if not reader.accept("{"):
        return _type(reader.read_until(",")[0])
    items: list[Json] = []
    while True:
        text, stop = reader.read_until(",}")
        if not stop:
            _refuse("a list has to end with `}`")
        items.append(_type(text))
        if stop == "}":
            reader.accept(",")
            return items


def _type(text: str) -> Json:
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if text == "0":
        return 0
    if _INTEGER.fullmatch(text) and _SMALLEST <= int(text) <= _LARGEST:
        return int(text)
    return text


def _set(target: dict[str, Json], name: str, value: Json) -> None:
    """Set a value; Helm ignores one without a name."""
    if name:
        target[name] = value


def _refuse(message: str) -> NoReturn:
    raise SetRefused(message)
