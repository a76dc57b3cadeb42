"""Messages about HCL that an install is given: what is never closed, closes nothing or is missing.

These are common mistakes. Terraform on the runner decides whether the text is valid.
"""

import re

from exclave.base.hcl_lexer import HclBroken, Piece, PieceKind, split_hcl

_BRACKET = re.compile(r"[()\[\]{}]")
_NO_VALUE = re.compile(r"^[ \t]*[A-Za-z_][\w-]*[ \t]*(=)[ \t]*$", re.MULTILINE)
_OPENINGS = {")": "(", "]": "[", "}": "{"}


def find_hcl_flaw(text: str) -> str:
    """Return why a text cannot be HCL; empty if no mistake was found."""
    opened: list[tuple[str, int]] = []
    bare: list[str] = []
    at = 0
    try:
        for piece in split_hcl(text):
            if piece.kind is PieceKind.CODE:
                for bracket in _BRACKET.finditer(piece.text):
                    sign, position = bracket[0], at + bracket.start()
                    if sign not in _OPENINGS:
                        opened.append((sign, position))
                    elif not opened or opened.pop()[0] != _OPENINGS[sign]:
                        return f"not HCL: `{sign}` at {_locate(text, position)} closes nothing"
            bare.append(_blank(piece))
            at += len(piece.text)
    except HclBroken as broken:
        opened.append((broken.opening, broken.at))
    if opened:
        sign, position = opened[-1]
        return f"not HCL: `{sign}` at {_locate(text, position)} is never closed"
    return _find_missing_value("".join(bare))


def _find_missing_value(bare: str) -> str:
    match = _NO_VALUE.search(bare)
    return f"not HCL: `=` at {_locate(bare, match.start(1))} has no value" if match else ""


def _blank(piece: Piece) -> str:
    """Return a piece with every position kept: comments become spaces, texts become `-`."""
    if piece.kind is PieceKind.CODE:
        return piece.text
    fill = " " if piece.kind is PieceKind.COMMENT else "-"
    return re.sub(r"[^\n]", fill, piece.text)


def _locate(text: str, at: int) -> str:
    line = text.count("\n", 0, at) + 1
    return f"line {line}, column {at - text.rfind(chr(10), 0, at)}"
