"""A lexer for HCL that separates code from quoted texts, heredocs and comments.

The control plane checks inputs with it, and the runner fills placeholders. Terraform itself decides
whether the text is valid.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum


class PieceKind(StrEnum):
    """What a piece of HCL text is."""

    CODE = "code"
    QUOTED = "quoted"
    HEREDOC = "heredoc"
    COMMENT = "comment"


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of the text that is all of one kind; pieces together are the whole text."""

    kind: PieceKind
    text: str


class HclBroken(ValueError):  # noqa: N818 - says what happened, like `Problem`
    """The text ends before a quoted text, template, heredoc or comment in it is closed."""

    def __init__(self, message: str, opening: str, at: int) -> None:
        super().__init__(message)
        self.opening = opening
        """What was never closed, such as `${`."""
        self.at = at
        """The offset of the opening in the text."""


_START = re.compile(
    r"""(?P<quote>")
      | (?P<comment>\#[^\n]*|//[^\n]*|/\*.*?\*/)
      | (?P<heredoc><<-?(?P<mark>[A-Za-z_][A-Za-z0-9_-]*)[ \t]*\r?\n)
      | (?P<unclosed_comment>/\*)""",
    re.VERBOSE | re.DOTALL,
)
_IN_QUOTED = re.compile(r'\\.|"|\n|\$\$\{|%%\{|\$\{|%\{', re.DOTALL)
_IN_TEMPLATE = re.compile(r'["{}]')


def split_hcl(text: str) -> Iterator[Piece]:
    """Yield the pieces of HCL: code, quoted texts with their quotes, heredocs and comments.

    Raise `HclBroken` where something is never closed.
    """
    end = 0
    while start := _START.search(text, end):
        at = start.start()
        if end < at:
            yield Piece(PieceKind.CODE, text[end:at])
        if start["quote"]:
            kind, end = PieceKind.QUOTED, _find_quoted_end(text, at)
        elif start["comment"]:
            kind, end = PieceKind.COMMENT, start.end()
        elif start["heredoc"]:
            kind, end = PieceKind.HEREDOC, _find_heredoc_end(text, start)
        else:
            raise HclBroken("a comment is not closed", "/*", at)
        yield Piece(kind, text[at:end])
    if end < len(text):
        yield Piece(PieceKind.CODE, text[end:])


def _find_quoted_end(text: str, at: int) -> int:
    """Return the end of a quoted text; templates in it may hold quoted texts again.

    The nesting is kept in a list, because recursion would fail on hostile input.
    """
    nesting = [_Opened('"', at)]
    at += 1
    while nesting:
        inner = nesting[-1]
        pattern = _IN_QUOTED if inner.opening == '"' else _IN_TEMPLATE
        match = pattern.search(text, at)
        if match is None or match[0] == "\n":
            what = "a quoted text" if inner.opening == '"' else "a template"
            raise HclBroken(f"{what} is not closed", inner.opening, inner.at)
        at = match.end()
        match inner.opening, match[0]:
            case '"', '"':
                nesting.pop()
            case _, '"' | "${" | "%{":
                nesting.append(_Opened(match[0], match.start()))
            case _, "{":
                inner.braces += 1
            case _, "}" if inner.braces:
                inner.braces -= 1
            case _, "}":
                nesting.pop()
            case _:
                pass  # an escape
    return at


def _find_heredoc_end(text: str, start: re.Match[str]) -> int:
    last = re.compile(rf"^[ \t]*{re.escape(start['mark'])}[ \t]*\r?$", re.MULTILINE)
    match = last.search(text, start.end())
    if match is None:
        raise HclBroken("a heredoc is not closed", f"<<{start['mark']}", start.start())
    return match.end()


@dataclass(slots=True)
class _Opened:
    """A quoted text or template that is not closed yet, with the braces open in a template."""

    opening: str
    at: int
    braces: int = 0
