"""Reads HCL: whether a text is one expression, and the types of variables."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from exclave.base.hcl_lexer import HclBroken, Piece, PieceKind, split_hcl

_PRIMITIVES = frozenset({"string", "number", "bool"})
_SIMPLE = re.compile(r'"[A-Za-z0-9_-]*"')
_VARIABLE = re.compile(r'(?:^|[\n}])\s*variable\s+"?([A-Za-z0-9_-]+)"?\s*\{')
_TYPE = re.compile(r'(?:^|[\n;])\s*type\s*=\s*"?([A-Za-z_]+)')


_DEFAULT = re.compile(r"(?:^|[\n;])\s*default\s*=")


class _Variable(NamedTuple):
    """A variable that a module declares."""

    name: str
    is_structured: bool
    is_required: bool


def is_expression(text: str) -> bool:
    """Return whether a text in parentheses stays inside of them."""
    depth = 0
    try:
        for piece in split_hcl(text):
            for sign in piece.text if piece.kind is PieceKind.CODE else "":
                depth += (sign in "([{") - (sign in ")]}")
                if depth < 0:
                    return False
    except HclBroken:
        return False
    return depth == 0 and bool(text.strip())


def read_variable_types(folder: Path) -> dict[str, bool]:
    """Return for each variable that a module declares whether its values are structured.

    Like Terraform's `-var`: text for `string`, `number`, `bool` and untyped variables is the value;
    for the others (`list(…)`, `map(…)`, `object(…)`, `any`, …) it is an expression.
    """
    return {variable.name: variable.is_structured for variable in _read_variables(folder)}


def needs_value(folder: Path, name: str) -> bool:
    """Return whether a module declares a variable and has no default for it."""
    return any(entry.name == name and entry.is_required for entry in _read_variables(folder))


def _read_variables(folder: Path) -> Iterator[_Variable]:
    for file in sorted(folder.iterdir()):
        if not file.is_file():
            continue
        if file.name.endswith((".tf", ".tofu")):
            yield from _read_native(file.read_text(errors="replace"))
        elif file.name.endswith((".tf.json", ".tofu.json")):
            yield from _read_json(file.read_text(errors="replace"))


def _read_native(text: str) -> Iterator[_Variable]:
    try:
        bare = "".join(_strip(piece) for piece in split_hcl(text))
    except HclBroken:
        return  # Terraform reports this error, with the line
    for block in _VARIABLE.finditer(bare):
        body = _read_body(bare, block.end())
        declared = _TYPE.search(body)
        kind = "string" if declared is None else declared[1]
        yield _Variable(block[1], kind not in _PRIMITIVES, _DEFAULT.search(body) is None)


def _strip(piece: Piece) -> str:
    """Return a piece without anything that could be mistaken for code."""
    match piece.kind:
        case PieceKind.CODE:
            return piece.text
        case PieceKind.QUOTED:
            return piece.text if _SIMPLE.fullmatch(piece.text) else '""'
        case PieceKind.HEREDOC | PieceKind.COMMENT:
            return " "


def _read_body(bare: str, at: int) -> str:
    """Return the body of a block that opens before `at`, with nested blocks blanked."""
    depth, body = 1, ""
    while at < len(bare) and depth > 0:
        sign = bare[at]
        depth += (sign in "([{") - (sign in ")]}")
        body += sign if depth == 1 else " "
        at += 1
    return body


def _read_json(text: str) -> Iterator[_Variable]:
    try:
        declared = json.loads(text)
    except (ValueError, RecursionError):
        return
    blocks = declared.get("variable", {}) if isinstance(declared, dict) else {}
    parts = blocks if isinstance(blocks, list) else [blocks]
    for part in parts:
        for name, body in part.items() if isinstance(part, dict) else ():
            inner = body[0] if isinstance(body, list) and body else body
            settings = inner if isinstance(inner, dict) else {}
            kind = settings.get("type", "")
            is_structured = bool(kind) and kind not in _PRIMITIVES
            yield _Variable(name, is_structured, "default" not in settings)
