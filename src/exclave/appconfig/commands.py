"""Commands as words: split before their templates are rendered, so that no value adds a word.

A command is written like a shell command line: words separated by spaces, with quotes and
backslashes. Templates insert values that may contain anything, quotes too. So the author's text is
split first, and its separators and quotes are replaced by marks that no value can contain, because
they are random for each rendering. A rendered value stays part of the word that contains it.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from exclave.appconfig.templates import ROOT, is_template

_SPACES = " \t\r\n"
_TOKENS = 100_000
"""The maximum number of parts of a template; one with more is refused by the parser."""


class BadCommand(ValueError):  # noqa: N818 - it becomes a diagnostic, or the reason of a step
    """A command that cannot be split: a quote or an escape is not closed."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


@dataclass(frozen=True, slots=True)
class MarkedCommand:
    """A command whose separators and quotes are marks, and whose templates are not yet rendered."""

    text: str
    cut: str
    quote: str

    def read_words(self, rendered: str) -> list[str]:
        """Return the words of the rendered text. As in a shell, empty unquoted words vanish."""
        words = rendered.split(self.cut)
        return [word.replace(self.quote, "") for word in words if word]


def mark_command(text: str, token: str, roots: tuple[str, ...] = (ROOT,)) -> MarkedCommand:
    """Return a command with marked words; the token makes the marks unguessable."""
    marker = _Marker(cut=f"\0{token}c\0", quote=f"\0{token}q\0")
    for piece, is_action in _cut_actions(text) if is_template(text, roots) else [(text, False)]:
        if is_action:
            marker.add_action(piece)
        else:
            marker.add_text(piece)
    return marker.finish()


def _cut_actions(text: str) -> Iterator[tuple[str, bool]]:
    """Split a template into texts and actions, with trim markers applied and removed."""
    # Loaded here, because most directories need no more than plain paths.
    from exclave.template import TemplateProblem  # noqa: PLC0415
    from exclave.template.lexer import Kind, Lexer  # noqa: PLC0415

    try:
        tokens = Lexer(text, "", _TOKENS).run()
    except TemplateProblem as problem:
        raise BadCommand(problem.message, problem.advice) from problem
    start = 0
    for token in tokens:
        if token.kind is Kind.TEXT:
            yield token.text, False
        elif token.kind is Kind.OPEN:
            start = token.at + (3 if _trims_left(text, token.at) else 2)
        elif token.kind is Kind.CLOSE:
            end = token.at - (1 if _trims_right(text, token.at, start) else 0)
            yield f"{{{{{text[start:end]}}}}}", True


def _trims_left(text: str, opening: int) -> bool:
    return text[opening + 2 : opening + 3] == "-" and text[opening + 3 : opening + 4] in _SPACES


def _trims_right(text: str, closing: int, start: int) -> bool:
    return closing - 1 > start and text[closing - 1] == "-" and text[closing - 2] in _SPACES


class _Marker:
    """Scans the author's text by the rules of `shlex` and POSIX shells."""

    def __init__(self, cut: str, quote: str) -> None:
        self._cut = cut
        self._quote_mark = quote
        self._out: list[str] = []
        self._quote = ""
        self._escaping = False

    def add_action(self, source: str) -> None:
        """Add a template action as one unit."""
        if self._escaping:
            raise BadCommand(
                "a backslash stands before a template",
                "Remove it: what a template renders is never read as quotes or spaces.",
            )
        self._out.append(source)

    def add_text(self, text: str) -> None:
        """Add literal text of the author."""
        for char in text:
            if self._escaping:
                self._add_escaped(char)
            elif self._quote:
                self._add_quoted(char)
            else:
                self._add_plain(char)

    def finish(self) -> MarkedCommand:
        """Return the marked command."""
        if self._quote:
            raise BadCommand(
                f"a quote {self._quote} is never closed",
                f"Close it, or write \\{self._quote} for the character itself.",
            )
        if self._escaping:
            raise BadCommand("it ends with a backslash", "Write two for the character itself.")
        return MarkedCommand("".join(self._out), self._cut, self._quote_mark)

    def _add_escaped(self, char: str) -> None:
        self._escaping = False
        kept = "\\" if self._quote and char not in {self._quote, "\\"} else ""
        # The mark keeps two characters apart that would begin a template side by side.
        self._out += [self._quote_mark, kept, char]

    def _add_quoted(self, char: str) -> None:
        if char == self._quote:
            self._quote = ""
            self._out.append(self._quote_mark)
        elif char == "\\" and self._quote == '"':
            self._escaping = True
        else:
            self._out.append(char)

    def _add_plain(self, char: str) -> None:
        if char in _SPACES:
            self._out.append(self._cut)
        elif char in {"'", '"'}:
            self._quote = char
            self._out.append(self._quote_mark)
        elif char == "\\":
            self._escaping = True
        else:
            self._out.append(char)
