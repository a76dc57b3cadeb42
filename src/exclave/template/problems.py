"""The error type of the template package: what is wrong with a template, and where."""

from dataclasses import dataclass

from exclave.base.errors import Problem


@dataclass(frozen=True, slots=True)
class Position:
    """A position in a template; lines and columns count from 1, columns in characters."""

    line: int
    column: int


def find_position(text: str, offset: int) -> Position:
    """Return the line and column of an offset."""
    offset = max(0, min(offset, len(text)))
    start = text.rfind("\n", 0, offset) + 1
    return Position(line=text.count("\n", 0, offset) + 1, column=offset - start + 1)


class TemplateProblem(Problem):
    """A template does not parse, reads a missing value, or exceeds a limit."""

    code = "template_invalid"

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        file: str = "",
        line: int = 1,
        column: int = 1,
        path: str = "",
    ) -> None:
        super().__init__(message, hint=hint, file=file, line=line, column=column, path=path)
        self.file = file
        self.line = line
        self.column = column
        self.path = path

    def __str__(self) -> str:
        return f"{self.file or 'template'}:{self.line}:{self.column}: {self.message}"


class TooManyTokens(TemplateProblem):
    """A template has more tokens than the limit."""


class Fault(Exception):  # noqa: N818 - the inner side of a Problem, before its place is known
    """A failure without a position; the evaluator adds the position and raises the problem."""

    def __init__(self, message: str, *, hint: str = "", path: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.path = path
