"""Render several texts on one budget in a worker process; imports nothing of the server."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from exclave.appconfig.templates import Fault, make_budget, render_text


@dataclass(frozen=True, slots=True)
class Wanted:
    """A text to render, and the values for it."""

    text: str
    values: Mapping[str, object]
    now: datetime | None


def render_each(wanted: Sequence[Wanted], steps: int) -> tuple[list[str | Fault], int]:
    """Render texts on one budget; return the results and what is left of the budget."""
    budget = make_budget(steps)
    done = [render_text(item.text, item.values, item.now, budget) for item in wanted]
    return done, max(0, budget.left)
