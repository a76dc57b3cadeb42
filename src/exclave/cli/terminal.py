r"""The only module that writes to a terminal, and the only one that may send it an escape.

Names, messages, plans and logs were written by others: a tenant, a runner, a file. Whatever is
printed passes `clean` on its way out, so a command cannot forget it. Our own colours survive
because they are in a `Styled`, which only `style`, `join` and `+` make. An f-string or `str.join`
over a `Styled` is a plain `str` again; printing it shows `\x1b[31m` as text, which looks bad but
harms nobody.
"""

import getpass
import re
import sys
from collections.abc import Iterable

import click

from exclave.base.printable import dump_json, escape_controls, escape_line

_ESCAPE = re.compile(r"\x1b(?:\[[0-9;:?<=>!]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|.)?")
_COLOUR_ESCAPE = re.compile(r"\x1b\[[0-9;:]*m")


class Styled(str):
    """Text that is ready for a terminal: cleaned, with no escapes but our own styles."""

    __slots__ = ()

    def __add__(self, other: str) -> "Styled":
        """Append text, which is cleaned."""
        return Styled(str.__add__(self, clean(other)))

    def __radd__(self, other: str) -> "Styled":
        """Put text before, which is cleaned."""
        return Styled(str.__add__(clean(other), self))


def clean(text: str) -> Styled:
    r"""Return text that is safe for a terminal; `\n` and `\t` are kept."""
    return text if isinstance(text, Styled) else Styled(escape_controls(text))


def clean_line(text: str) -> Styled:
    """Return text that is safe for a terminal and cannot begin a line of its own."""
    return text if isinstance(text, Styled) else Styled(escape_line(text))


def style(text: str, shade: str | None = None, *, bold: bool = False, on: bool = True) -> Styled:
    """Return text in a colour or in bold, or without any style if `on` is false."""
    ready = clean(text)
    if not on or not (shade or bold):
        return ready
    return Styled(click.style(ready, fg=shade, bold=bold or None))


def join(parts: Iterable[str], by: str = "\n") -> Styled:
    """Join texts, each cleaned."""
    return Styled(clean(by).join(map(clean, parts)))


def indent(text: str, by: str) -> Styled:
    """Return text whose lines after the first begin with `by`."""
    return Styled(clean(text).replace("\n", f"\n{clean(by)}"))


def keep_colours(text: str, *, colour: bool) -> Styled:
    """Return a line of a job's output without its escapes and controls, maybe with its colours.

    They are removed instead of escaped, because progress bars are full of them.
    """
    kept = _ESCAPE.sub(lambda match: _keep_colour(match[0]) if colour else "", text)
    plain = "".join(c for c in kept if c.isprintable() or c in "\t\x1b")
    return Styled(f"{plain}\x1b[0m" if "\x1b" in plain else plain)


def print_out(text: str, *, newline: bool = True) -> None:
    """Write data to stdout."""
    click.echo(clean(text), nl=newline, color=True)


def print_err(text: str, *, newline: bool = True) -> None:
    """Write a message to stderr; styles are removed if stderr is not a terminal."""
    click.echo(clean(text), nl=newline, err=True)


def print_json(value: object, *, indent: int | None = 2, err: bool = False) -> None:
    """Write a JSON document; control characters are JSON escapes in it."""
    click.echo(dump_json(value, indent=indent), err=err)


def ask(question: str) -> bool:
    """Ask a question on stderr; anything but yes is no."""
    # Not click.confirm: it writes a space to stdout, which is for data only.
    print_err(f"{question} [y/N]: ", newline=False)
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def ask_secret(name: str) -> str:
    """Ask for a value without echoing it."""
    return getpass.getpass(f"{clean_line(name)}: ")


def _keep_colour(escape: str) -> str:
    return escape if _COLOUR_ESCAPE.fullmatch(escape) else ""
