"""The template language as app configs use it; loaded lazily with the first template."""

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from exclave.appconfig.diagnostics.sources import Position

if TYPE_CHECKING:
    from exclave.template import Budget, Template

ROOT = "nuon"
RUNBOOK_ROOTS = ("runbook_inputs", "runbook_outputs")
_PLAIN = re.compile(r"\{\{(?:- )?[ \t]*(\.[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)[ \t]*(?: -)?\}\}")
"""An action that prints one path: nine of ten are like this."""


@dataclass(frozen=True, slots=True)
class Use:
    """A value that a template reads: its path from the root, as far as it is static."""

    path: tuple[str, ...]
    position: Position
    exact: bool = True
    """False: something below the path is read, and only the values decide what."""
    whole: bool = False
    """Everything below the path is used: it is printed or passed to a function."""
    optional: bool = False
    """The template tolerates that the last key is missing."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a template cannot be parsed or rendered, and where."""

    message: str
    hint: str
    position: Position


def is_template(content: str, roots: tuple[str, ...] = (ROOT,)) -> bool:
    """Return whether a text is rendered at all; braces of other tools stay as they are."""
    return "{{" in content and any(f".{root}" in content for root in roots)


def find_uses(content: str, roots: tuple[str, ...] = (ROOT,)) -> tuple[Use, ...] | Fault:
    """Return every value that a template can read, or why it cannot be parsed."""
    if not is_template(content, roots):
        return ()
    plain = _find_plain(content)
    if plain is not None:
        return plain
    # Loaded here, because most directories get by with plain paths, and start faster so.
    from exclave.template import TemplateProblem, find_references  # noqa: PLC0415

    try:
        template = _parse(content, _pick_root(content, roots))
        references = find_references(template)
    except TemplateProblem as problem:
        return Fault(problem.message, problem.advice, Position(problem.line, problem.column))
    if template.unknown_part is not None:
        name, at = template.unknown_part
        hint = f'Define it: `{{{{define "{name}"}}}}…{{{{end}}}}`.'
        return Fault(f"there is no part {name!r}", hint, find_position(content, at))
    return tuple(
        Use(
            reference.path,
            Position(reference.line, reference.column),
            reference.exact,
            reference.whole,
            reference.optional,
        )
        for reference in references
    )


def find_refused(content: str) -> tuple[Fault, ...]:
    """Return the calls in a template that are always refused, with the reasons."""
    if _find_plain(content) is not None:
        return ()
    from exclave.template import TemplateProblem  # noqa: PLC0415 - as above
    from exclave.template.names import COUNTS, REASONS  # noqa: PLC0415 - as above

    try:
        template = _parse(content, ROOT)
    except TemplateProblem:
        return ()
    words = [match for match in re.finditer(r"\w+", content) if match[0] in REASONS]
    offsets = {word[0]: word.start() for word in reversed(words) if word[0] in template.functions}
    hint = "Hand the value in as an input or a secret."
    refused = [
        Fault(f"`{name}` is not available: it {REASONS[name]}", hint, find_position(content, at))
        for name, at in sorted(offsets.items())
    ]
    miscounts = template.miscounts
    return (
        *refused,
        *(_describe_miscount(content, *miscount, *COUNTS[miscount[0]]) for miscount in miscounts),
    )


def _describe_miscount(
    content: str,
    name: str,
    given: int,
    at: int,
    wanted: int,
    or_more: bool,  # noqa: FBT001
) -> Fault:
    least = "at least " if or_more else ""
    message = f"`{name}` needs {least}{wanted} arguments, and gets {given}"
    hint = "A value that comes through a pipe is the last argument."
    return Fault(message, hint, find_position(content, at))


def find_position(content: str, offset: int) -> Position:
    """Return the line and column of an offset."""
    start = content.rfind("\n", 0, offset) + 1
    return Position(content.count("\n", 0, offset) + 1, offset - start + 1)


def make_budget(steps: int | None = None) -> "Budget":
    """Return a budget for one or several renderings; by default that of a single one."""
    from exclave.template import Budget, Limits  # noqa: PLC0415 - as above

    return Budget(Limits() if steps is None else Limits(steps=steps))


def render_text(
    content: str,
    values: Mapping[str, object],
    now: datetime | None = None,
    budget: "Budget | None" = None,
) -> str | Fault:
    """Return a template rendered with the known values."""
    roots = tuple(values)
    if not is_template(content, roots):
        return content
    from exclave.template import TemplateProblem, render_within  # noqa: PLC0415 - as above

    try:
        return render_within(
            budget or make_budget(), content, values, root=_pick_root(content, roots), now=now
        )
    except TemplateProblem as problem:
        return Fault(problem.message, problem.advice, Position(problem.line, problem.column))


@functools.lru_cache(maxsize=1)
def _parse(content: str, root: str) -> "Template":
    """Return a parsed template; cached, because several checks ask for it."""
    from exclave.template import parse  # noqa: PLC0415 - as above

    return parse(content, root=root)


def _find_plain(content: str) -> tuple[Use, ...] | None:
    """Return the uses of a text whose actions are all plain paths, or None for any other text."""
    matches = list(_PLAIN.finditer(content))
    if len(matches) != content.count("{{"):
        return None
    uses = []
    line, line_start = 1, 0
    for match in matches:
        start = match.start(1)
        line += content.count("\n", line_start, start)
        line_start = max(line_start, content.rfind("\n", line_start, start) + 1)
        position = Position(line, start - line_start + 1)
        uses.append(Use(tuple(match[1][1:].split(".")), position, whole=True))
    return tuple(uses)


def _pick_root(content: str, roots: tuple[str, ...]) -> str:
    return next((root for root in roots if f".{root}" in content), ROOT)
