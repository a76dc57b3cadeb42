"""The template language as this room needs it; loaded when the first template is met."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from exclave.appconfig.sources import Position

ROOT = "nuon"
RUNBOOK_ROOTS = ("runbook_inputs", "runbook_outputs")
_PLAIN = re.compile(r"\{\{(?:- )?[ \t]*(\.[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)[ \t]*(?: -)?\}\}")
"""An action that prints one path: nine of ten are like this."""


@dataclass(frozen=True, slots=True)
class Use:
    """A value that a template reads: its path from the root, as far as it can be known."""

    path: tuple[str, ...]
    position: Position
    exact: bool = True
    """False: something below the path is read, and only the values decide what."""
    whole: bool = False
    """All below the path is used: it is printed or handed to a function."""
    optional: bool = False
    """The template bears that the last key is missing."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a template cannot be parsed or rendered, and where."""

    message: str
    hint: str
    position: Position


def is_template(content: str, roots: tuple[str, ...] = (ROOT,)) -> bool:
    """Whether a text is rendered at all: other tools' braces stay as they are."""
    return "{{" in content and any(f".{root}" in content for root in roots)


def find_uses(content: str, roots: tuple[str, ...] = (ROOT,)) -> tuple[Use, ...] | Fault:
    """Find every value that a template can read, or why it cannot be parsed."""
    if not is_template(content, roots):
        return ()
    plain = _find_plain(content)
    if plain is not None:
        return plain
    # Loaded here, because most directories get by with plain paths, and start faster so.
    from exclave.template import TemplateProblem, find_references, parse  # noqa: PLC0415

    try:
        found = find_references(parse(content, root=_pick_root(content, roots)))
    except TemplateProblem as problem:
        return Fault(problem.message, problem.advice, Position(problem.line, problem.column))
    return tuple(
        Use(each.path, Position(each.line, each.column), each.exact, each.whole, each.optional)
        for each in found
    )


def render_text(content: str, values: Mapping[str, object]) -> str | Fault:
    """Render a template with the values that are known."""
    roots = tuple(values)
    if not is_template(content, roots):
        return content
    from exclave.template import TemplateProblem, parse, render  # noqa: PLC0415 - as above

    try:
        return render(parse(content, root=_pick_root(content, roots)), values)
    except TemplateProblem as problem:
        return Fault(problem.message, problem.advice, Position(problem.line, problem.column))


def _find_plain(content: str) -> tuple[Use, ...] | None:
    """Find the uses of a text whose actions are all plain paths; None if it is not that simple."""
    found = list(_PLAIN.finditer(content))
    if len(found) != content.count("{{"):
        return None
    uses = []
    for each in found:
        start = each.start(1)
        line_start = content.rfind("\n", 0, start) + 1
        position = Position(content.count("\n", 0, start) + 1, start - line_start + 1)
        uses.append(Use(tuple(each[1][1:].split(".")), position, whole=True))
    return tuple(uses)


def _pick_root(content: str, roots: tuple[str, ...]) -> str:
    return next((root for root in roots if f".{root}" in content), ROOT)
