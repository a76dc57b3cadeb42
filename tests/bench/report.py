"""One JSON line per measure: what was measured, against which baseline, and whether it is enough."""

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Measure:
    """A figure with the baseline of the same run; `goal` says in words what `met` was judged by."""

    measure: str
    value: float
    unit: str
    goal: str
    met: bool
    baseline: float | None = None
    ratio: float | None = None
    """How many times better than the baseline, whichever direction is better."""
    detail: Mapping[str, object] = field(default_factory=dict)


def write_line(measure: Measure) -> str:
    """Write a measure as its line."""
    line: dict[str, object] = {
        "measure": measure.measure,
        "value": _shorten(measure.value),
        "unit": measure.unit,
        "baseline": _shorten(measure.baseline),
        "ratio": _shorten(measure.ratio),
        "goal": measure.goal,
        "met": measure.met,
    }
    if measure.detail:
        line["detail"] = dict(measure.detail)
    return json.dumps(line)


def say(text: str) -> None:
    """Tell a person how far the bench is; figures alone go to stdout."""
    print(text, file=sys.stderr, flush=True)


def find_quantile(values: list[float], part: float) -> float:
    """Pick the value below which that part of all values lies."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))]


def _shorten(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")
