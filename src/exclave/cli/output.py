"""What a command shows: data on stdout, as text or as JSON, and talk on stderr."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import click
from pydantic import BaseModel

from exclave.base.errors import Problem
from exclave.cli.errors import clean

COLOURS: Mapping[str, str] = {
    "succeeded": "green", "up": "green", "free": "green", "running": "cyan", "busy": "cyan",
    "active": "cyan", "offered": "cyan", "failed": "red", "lost": "red", "revoked": "red",
    "locked": "red", "needs_reconcile": "red", "late": "yellow", "cancelled": "yellow",
    "waiting": "yellow", "skipped": "bright_black", "pending": "bright_black",
}  # fmt: skip

_ESCAPE = re.compile(r"\x1b(?:\[[0-9;:?<=>!]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|.)?")
_COLOUR_ESCAPE = re.compile(r"\x1b\[[0-9;:]*m")


@dataclass(frozen=True, slots=True)
class Output:
    """Writes for a person or for a program; the two never mix on stdout."""

    json_mode: bool
    terminal: bool
    colour: bool

    def say(self, text: str) -> None:
        """Talk to the person on stderr."""
        click.echo(text, err=True)

    def warn(self, problem: Problem) -> None:
        """Mention trouble that may pass by itself."""
        self.say(f"warning: {clean(problem.message)}; trying again")

    def show(self, value: object, text: str) -> None:
        """Answer with one document: the value as JSON, or its text."""
        if self.json_mode:
            click.echo(json.dumps(_plain(value), indent=2, ensure_ascii=False))
        elif text:
            click.echo(text, color=True)

    def stream(self, value: object, text: str) -> None:
        """Answer with one of many: a line of JSON, or of text."""
        line = json.dumps(_plain(value), ensure_ascii=False) if self.json_mode else text
        click.echo(line, color=True)

    def table(self, headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
        """Lay out rows in columns."""
        if not rows:
            return ""
        cells = [[clean(cell).replace("\n", " ") for cell in row] for row in rows]
        widths = [max(map(len, column)) for column in zip(headers, *cells, strict=True)]
        head = self._paint_row(headers, widths)
        lines = [click.style(head, bold=True) if self.colour else head]
        return "\n".join(lines + [self._paint_row(row, widths) for row in cells])

    def details(self, pairs: Sequence[tuple[str, str]]) -> str:
        """Lay out names and values, without the empty ones."""
        shown = [(name, clean(value)) for name, value in pairs if value]
        width = max((len(name) for name, _ in shown), default=0)
        return "\n".join(f"{name:<{width}}  {self.paint(value)}" for name, value in shown)

    def paint(self, word: str, shown: str | None = None) -> str:
        """Colour a state."""
        text = word if shown is None else shown
        colour = COLOURS.get(word) if self.colour else None
        return click.style(text, fg=colour) if colour else text

    def log_text(self, text: str) -> str:
        """Show a line of a job's output; on a terminal only its colours are obeyed."""
        if not self.terminal:
            return text
        kept = _ESCAPE.sub(self._keep_colour, text)
        plain = "".join(c for c in kept if c.isprintable() or c in "\t\x1b")
        return f"{plain}\x1b[0m" if "\x1b" in plain else plain

    def _keep_colour(self, found: re.Match[str]) -> str:
        return found[0] if self.colour and _COLOUR_ESCAPE.fullmatch(found[0]) else ""

    def _paint_row(self, row: Sequence[str], widths: Sequence[int]) -> str:
        padded = [
            self.paint(cell, f"{cell:<{width}}") for cell, width in zip(row, widths, strict=True)
        ]
        return "  ".join([*padded[:-1], self.paint(row[-1])]).rstrip()


def show_time(at: datetime | None) -> str:
    """Write a time for people, in UTC."""
    return "" if at is None else f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%SZ}"


def show_duration(seconds: float) -> str:
    """Write a duration for people."""
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
            return {str(name): _plain(each) for name, each in value.items()}
        case list() | tuple():
            return [_plain(each) for each in value]
        case datetime():
            return value.isoformat()
        case _:
            return value
