"""Reads HCL as far as needed: where texts, comments and heredocs are, and variables' types."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


class Place(StrEnum):
    """What a piece of HCL text is."""

    CODE = "code"
    QUOTED = "quoted"
    HEREDOC = "heredoc"
    COMMENT = "comment"


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of the text that is all of one kind; pieces together are the whole text."""

    place: Place
    text: str


class HclBroken(ValueError):  # noqa: N818 - says what happened, like `Problem`
    """The text ends in the middle of something."""


_HEREDOC = re.compile(r"<<-?([A-Za-z_][A-Za-z0-9_-]*)[ \t]*\r?\n")
_COMMENT = re.compile(r"(#|//)[^\n]*|/\*.*?\*/", re.DOTALL)
_PRIMITIVES = frozenset({"string", "number", "bool"})
_SIMPLE = re.compile(r'"[A-Za-z0-9_-]*"')
_VARIABLE = re.compile(r'(?:^|[\n}])\s*variable\s+"?([A-Za-z0-9_-]+)"?\s*\{')
_TYPE = re.compile(r'(?:^|[\n;])\s*type\s*=\s*"?([A-Za-z_]+)')


def split_hcl(text: str) -> Iterator[Piece]:
    """Cut HCL into code, quoted texts with their quotes, heredocs and comments."""
    at = start = 0
    while at < len(text):
        if text[at] == '"':
            place, end = Place.QUOTED, _end_quoted(text, at)
        elif comment := _COMMENT.match(text, at):
            place, end = Place.COMMENT, comment.end()
        elif heredoc := _HEREDOC.match(text, at):
            place, end = Place.HEREDOC, _end_heredoc(text, heredoc)
        elif text.startswith("/*", at):
            raise HclBroken("a comment is not closed")
        else:
            at += 1
            continue
        if start < at:
            yield Piece(Place.CODE, text[start:at])
        yield Piece(place, text[at:end])
        at = start = end
    if start < at:
        yield Piece(Place.CODE, text[start:])


def is_expression(text: str) -> bool:
    """Tell whether a text can stand in parentheses without reaching out of them."""
    depth = 0
    try:
        for piece in split_hcl(text):
            for sign in piece.text if piece.place is Place.CODE else "":
                depth += (sign in "([{") - (sign in ")]}")
                if depth < 0:
                    return False
    except HclBroken:
        return False
    return depth == 0 and bool(text.strip())


def read_variable_types(folder: Path) -> dict[str, bool]:
    """Tell of each variable that a module declares whether its values are structured.

    Text for `string`, `number`, `bool` and untyped variables is taken as it is; for the others
    (`list(…)`, `map(…)`, `object(…)`, `any`, …) it is an expression. That is how Terraform itself
    takes `-var`.
    """
    found: dict[str, bool] = {}
    for file in sorted(folder.iterdir()):
        if not file.is_file():
            continue
        if file.name.endswith((".tf", ".tofu")):
            found |= _read_native(file.read_text(errors="replace"))
        elif file.name.endswith((".tf.json", ".tofu.json")):
            found |= _read_json(file.read_text(errors="replace"))
    return found


def _read_native(text: str) -> dict[str, bool]:
    try:
        bare = "".join(_strip(piece) for piece in split_hcl(text))
    except HclBroken:
        return {}  # terraform says it better, with the line
    found = {}
    for block in _VARIABLE.finditer(bare):
        told = _TYPE.search(_read_body(bare, block.end()))
        kind = "string" if told is None else told[1]
        found[block[1]] = kind not in _PRIMITIVES
    return found


def _strip(piece: Piece) -> str:
    """Leave out what could be mistaken for code."""
    match piece.place:
        case Place.CODE:
            return piece.text
        case Place.QUOTED:
            return piece.text if _SIMPLE.fullmatch(piece.text) else '""'
        case Place.HEREDOC | Place.COMMENT:
            return " "


def _read_body(bare: str, at: int) -> str:
    """Read a block from behind its brace, without what is nested in it."""
    depth, body = 1, ""
    while at < len(bare) and depth > 0:
        sign = bare[at]
        depth += (sign in "([{") - (sign in ")]}")
        body += sign if depth == 1 else " "
        at += 1
    return body


def _read_json(text: str) -> dict[str, bool]:
    try:
        declared = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    blocks = declared.get("variable", {}) if isinstance(declared, dict) else {}
    parts = blocks if isinstance(blocks, list) else [blocks]
    found: dict[str, bool] = {}
    for part in parts:
        for name, body in part.items() if isinstance(part, dict) else ():
            inner = body[0] if isinstance(body, list) and body else body
            kind = inner.get("type", "") if isinstance(inner, dict) else ""
            found[name] = bool(kind) and kind not in _PRIMITIVES
    return found


def _end_quoted(text: str, at: int) -> int:
    """Find the end of a quoted text; templates in it may hold quoted texts again."""
    at += 1
    while at < len(text):
        sign = text[at]
        if sign == "\\":
            at += 2
        elif sign == '"':
            return at + 1
        elif text.startswith(("$${", "%%{"), at):
            at += 3
        elif text.startswith(("${", "%{"), at):
            at = _end_template(text, at + 2)
        elif sign == "\n":
            break
        else:
            at += 1
    raise HclBroken("a quoted text is not closed")


def _end_template(text: str, at: int) -> int:
    depth = 1
    while at < len(text):
        sign = text[at]
        if sign == '"':
            at = _end_quoted(text, at)
            continue
        depth += (sign == "{") - (sign == "}")
        at += 1
        if depth == 0:
            return at
    raise HclBroken("a template is not closed")


def _end_heredoc(text: str, heredoc: re.Match[str]) -> int:
    last = re.compile(rf"^[ \t]*{re.escape(heredoc[1])}[ \t]*$", re.MULTILINE)
    found = last.search(text, heredoc.end())
    if found is None:
        raise HclBroken("a heredoc is not closed")
    return found.end()
