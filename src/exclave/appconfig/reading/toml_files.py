"""Parsing of TOML files, with the position and a hint for syntax errors."""

import re
import tomllib
from collections.abc import Mapping
from typing import cast

from exclave.appconfig.diagnostics.codes import Code
from exclave.appconfig.diagnostics.report import Place, Report
from exclave.appconfig.diagnostics.sources import Position, Source
from exclave.appconfig.reading.toml_depth import MOST_PARTS, find_long_key

_PLACE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")
_DEEPEST = 64
_ZERO = re.compile(r"\\u0000|\\U00000000")
_TWICE = "Cannot overwrite a value"
_HINTS: Mapping[str, str] = {
    "Invalid value": 'Text needs quotes: key = "text".',
    "Expected '=' after a key": "A line is `key = value`, `[table]` or `# comment`.",
    _TWICE: "The same key is written twice; remove one of them.",
    "Cannot declare": "The same table is written twice; merge them, or use [[…]] for a list.",
    "Unclosed array": "The list lacks its `]`.",
    "Unterminated string": "The text lacks its closing quote.",
    "Illegal character '\\n'": "Close the quote before the line ends, or use three quotes.",
    "Expected newline or end of document": "Only one key stands on a line; is a quote missing?",
    "Unescaped '\\'": "Write `\\\\`, or use single quotes, in which nothing is escaped.",
}


_LINE_LONG = ("Invalid value", _TWICE, "Unescaped '\\'")
"""Syntax errors that end with their line, so that the following lines can still be checked."""
_MOST_MISTAKES = 10


def parse_toml(source: Source, report: Report) -> dict[str, object] | None:
    """Return a parsed file; report and return None if it is invalid."""
    if _refuse_long_key(source, report, source.text):
        return None
    try:
        data = tomllib.loads(source.text)
        _refuse_depth(data)
        escaped = _ZERO.search(source.text)
        if escaped is None or not _holds_zero(data):
            return data
        place = Place(source, (), source.locate_offset(escaped.start()))
        message = "a text holds the character zero, which nothing can store"
        report.error(Code.TOML_SYNTAX, place, message, "Remove it.")
    except RecursionError:
        report.error(Code.TOML_SYNTAX, source.path, "lists or tables are nested too deeply")
    except ValueError as error:
        _report_mistakes(source, report, error)
    return None


def _report_mistakes(source: Source, report: Report, error: ValueError) -> None:
    """Report a syntax error, and later ones that do not follow from it."""
    lines = source.text.split("\n")
    for _ in range(_MOST_MISTAKES):
        message, position = _read_error(source, error)
        hint = next((hint for start, hint in _HINTS.items() if message.startswith(start)), "")
        if message == _TWICE:
            line = lines[position.line - 1]
            position = Position(position.line, len(line) - len(line.lstrip()) + 1)
        report.error(Code.TOML_SYNTAX, Place(source, (), position), _lower(message), hint)
        if not message.startswith(_LINE_LONG):
            return
        lines[position.line - 1] = ""
        rest = "\n".join(lines)
        if _refuse_long_key(source, report, rest):
            return
        try:
            tomllib.loads(rest)
        except RecursionError:
            return
        except ValueError as following:
            error = following
            if not _read_error(source, error)[0].startswith(_LINE_LONG):
                return
        else:
            return


def _refuse_long_key(source: Source, report: Report, text: str) -> bool:
    """Report a key with too many parts; return whether there is one."""
    offset = find_long_key(text)
    if offset is None:
        return False
    line = text.count("\n", 0, offset) + 1
    place = Place(source, (), Position(line, offset - text.rfind("\n", 0, offset)))
    message = f"a key has more than {MOST_PARTS} parts"
    report.error(Code.TOML_SYNTAX, place, message, "Close the quote before it, or shorten the key.")
    return True


def _read_error(source: Source, error: ValueError) -> tuple[str, Position]:
    message = str(error)
    match = _PLACE.search(message)
    text = message[: match.start()] if match else message
    if match and match[1]:
        return text, Position(int(match[1]), int(match[2]))
    return text, source.locate_offset(len(source.text))


def _holds_zero(value: object) -> bool:
    match value:
        case str():
            return "\0" in value
        case dict():
            return any(_holds_zero(key) or _holds_zero(element) for key, element in value.items())
        case list():
            return any(map(_holds_zero, value))
        case _:
            return False


def _refuse_depth(data: dict[str, object]) -> None:
    """Raise if tables are nested too deep for recursive code."""
    level: list[object] = [data]
    for _ in range(_DEEPEST):
        level = [
            inner
            for element in level
            for inner in (
                element.values() if isinstance(element, dict) else cast("list[object]", element)
            )
            if isinstance(inner, dict | list)
        ]
        if not level:
            return
    raise RecursionError


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]
