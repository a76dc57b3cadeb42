"""Markdown of texts that others wrote: a vendor's words stay words."""

import re
from collections.abc import Iterable, Sequence
from typing import Final

_SPECIAL: Final = re.compile(r"([\\`*_{}\[\]<>#|~!&])")
_BAR: Final = re.compile(r"(?<!\\)\|")
_TICKS: Final = re.compile(r"`+")


def write_text(text: str) -> str:
    """Return a text in one line, in which nothing is markup."""
    line = " ".join(text.split())
    return _SPECIAL.sub(r"\\\1", line)


def write_code(text: str) -> str:
    """Return a text in one line as code."""
    line = " ".join(text.split()) or " "
    fence = "`" * (_find_longest(line) + 1)
    space = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{space}{line}{space}{fence}"


def write_block(lines: Iterable[str], language: str = "sh") -> str:
    """Return lines as a block of code."""
    body = "\n".join(lines)
    fence = "`" * max(3, _find_longest(body) + 1)
    return f"{fence}{language}\n{body}\n{fence}\n"


def write_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of cells that are Markdown already."""
    lines = [head, ["---"] * len(head), *rows]
    # In a table, a bar ends a cell even inside of code.
    whole = ([_BAR.sub(r"\|", cell) for cell in line] for line in lines)
    return "".join(f"| {' | '.join(line)} |\n" for line in whole)


def write_list(items: Iterable[str]) -> str:
    """Return a list of items that are Markdown already."""
    return "".join(f"- {item}\n" for item in items)


def _find_longest(text: str) -> int:
    return max((len(ticks) for ticks in _TICKS.findall(text)), default=0)
