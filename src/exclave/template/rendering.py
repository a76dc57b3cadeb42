"""The public functions `parse` and `render`, with all template functions."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from exclave.template.limits import DEFAULT_LIMITS, Budget, Limits
from exclave.template.names import NAMES
from exclave.template.nodes import Template
from exclave.template.parser import parse_template
from exclave.template.problems import TooManyTokens
from exclave.template.text import clean


def parse(text: str, *, name: str = "", root: str = "nuon") -> Template:
    """Return a parsed template; `name` is the file name in problems."""
    return parse_template(clean(text), name, root, NAMES, DEFAULT_LIMITS)


def render(
    template: Template,
    values: Mapping[str, object],
    limits: Limits = DEFAULT_LIMITS,
    *,
    now: datetime | None = None,
) -> str:
    """Return the rendered template; `values` are the keys of the root and are not changed.

    Without `now`, the functions that read the time are an error.
    """
    # The functions are most of the package; parsing alone starts faster without them.
    from exclave.template.evaluator import run_template  # noqa: PLC0415

    return run_template(template, values, Budget(limits), now)


def render_within(
    budget: Budget,
    text: str,
    values: Mapping[str, object],
    *,
    root: str = "nuon",
    now: datetime | None = None,
) -> str:
    """Parse and render with a budget that several templates share; each token counts as a step.

    Exceeding the budget is a problem and leaves it negative.
    """
    from exclave.template.evaluator import run_template  # noqa: PLC0415 - as above

    limits = replace(budget.limits, tokens=min(budget.limits.tokens, max(0, budget.left)))
    try:
        template = parse_template(clean(text), "", root, NAMES, limits)
    except TooManyTokens:
        budget.empty()
        raise
    budget.count(template.tokens)
    budget.depth = 0
    return run_template(template, values, budget, now)


def is_template(text: str, root: str = "nuon") -> bool:
    """Return whether a text is a template: it mentions the root key."""
    return f".{root}" in text
