"""Output of a command: data on stdout as text or JSON, messages on stderr."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from pydantic import BaseModel

from exclave.base.errors import Problem
from exclave.cli.terminal import (
    Styled,
    clean,
    clean_line,
    indent,
    join,
    keep_colours,
    print_err,
    print_json,
    print_out,
    style,
)

COLOURS: Mapping[str, str] = {
    "succeeded": "green", "up": "green", "free": "green", "running": "cyan", "busy": "cyan",
    "active": "cyan", "offered": "cyan", "failed": "red", "lost": "red", "revoked": "red",
    "locked": "red", "needs_reconcile": "red", "late": "yellow", "cancelled": "yellow",
    "waiting": "yellow", "skipped": "bright_black", "pending": "bright_black",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Output:
    """Writes either text or JSON to stdout, never both."""

    json_mode: bool
    terminal: bool
    colour: bool

    def say(self, text: str) -> None:
        """Print a message on stderr."""
        print_err(text)

    def warn(self, problem: Problem) -> None:
        """Print a warning about a problem that is being retried."""
        self.say(f"warning: {problem.message}; trying again")

    def show(self, value: object, text: str) -> None:
        """Print the result: the value as JSON, or its text."""
        if self.json_mode:
            print_json(_plain(value))
        elif text:
            print_out(text)

    def stream(self, value: object, text: str) -> None:
        """Print one of many results: a line of JSON or of text."""
        if self.json_mode:
            print_json(_plain(value), indent=None)
        else:
            print_out(text)

    def table(self, headers: Sequence[str], rows: Sequence[Sequence[str]]) -> Styled:
        """Return rows as a table."""
        if not rows:
            return clean("")
        cells = [[clean_line(cell.replace("\n", " ")) for cell in row] for row in rows]
        widths = [max(map(len, column)) for column in zip(headers, *cells, strict=True)]
        head = style(self._paint_row(headers, widths), bold=True, on=self.colour)
        return join([head, *(self._paint_row(row, widths) for row in cells)])

    def details(self, pairs: Sequence[tuple[str, str]]) -> Styled:
        """Return names and values as aligned lines, without empty values."""
        shown = [(clean_line(name), clean(value)) for name, value in pairs if value]
        width = max((len(name) for name, _ in shown), default=0)
        below = " " * (width + 2)
        lines = [f"{name:<{width}}  " + indent(self.paint(value), below) for name, value in shown]
        return join(lines)

    def paint(self, word: str, shown: str | None = None) -> Styled:
        """Return text in the colour of a state."""
        return style(word if shown is None else shown, COLOURS.get(word), on=self.colour)

    def log_text(self, text: str) -> Styled:
        """Return a line of a job's output; its colours are kept on a terminal only."""
        return keep_colours(text, colour=self.colour)

    def _paint_row(self, row: Sequence[str], widths: Sequence[int]) -> Styled:
        last = max((at for at, cell in enumerate(row) if cell), default=0)
        cells = zip(row[:last], widths[:last], strict=True)
        padded = [self.paint(cell, f"{cell:<{width}}") for cell, width in cells]
        return join([*padded, self.paint(row[last])], "  ")


def show_time(at: datetime | None) -> str:
    """Return a time as text, in UTC."""
    return "" if at is None else f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%SZ}"


def show_duration(seconds: float) -> str:
    """Return a duration as text."""
    whole = max(0, int(seconds))
    if whole < 60:  # noqa: PLR2004 - a minute
        return f"{whole}s"
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02}m" if hours else f"{minutes}m{rest:02}s"


def _plain(value: object) -> object:
    match value:
        case BaseModel():
            return value.model_dump(mode="json")
        case Mapping():
            return {str(name): _plain(element) for name, element in value.items()}
        case list() | tuple():
            return [_plain(element) for element in value]
        case datetime():
            return value.isoformat()
        case _:
            return value
