"""Conversion of any value to a number or a text, as sprig's helpers do it."""

import math
import re

from exclave.template import printing
from exclave.template.limits import Budget
from exclave.template.literals import MAX_INT, MIN_INT, parse_integer, parse_real
from exclave.template.values import Int64, Strings, Value, check_int, wrap_int64

_ZERO_FRACTION = re.compile(r"\.0+\Z")
_LONGEST = 400
_WORDS = {
    "inf": math.inf, "+inf": math.inf, "-inf": -math.inf, "infinity": math.inf,
    "+infinity": math.inf, "-infinity": -math.inf, "nan": math.nan,
}  # fmt: skip


def to_int64(value: Value) -> Int64:
    """Convert to an integer; what cannot be converted is 0."""
    match value:
        case bool() | int():
            return wrap_int64(check_int(value))
        case float():
            return _truncate(value)
        case str() if len(value) <= _LONGEST:
            number = parse_integer(_ZERO_FRACTION.sub("", value))
            return Int64(number if number is not None and MIN_INT <= number <= MAX_INT else 0)
        case _:
            return Int64(0)


def _truncate(value: float) -> Int64:
    """Cut the fraction; what does not fit becomes the smallest integer, as on amd64."""
    if not math.isfinite(value) or not MIN_INT <= value < MAX_INT:
        return Int64(MIN_INT)
    return Int64(int(value))


def to_float(value: Value) -> float:
    """Convert to a float; what cannot be converted is 0."""
    match value:
        case float():
            return value
        case bool() | int():
            return float(check_int(value))
        case str() if len(value) <= _LONGEST:
            word = _WORDS.get(value.lower())
            return (parse_real(value) or 0.0) if word is None else word
        case _:
            return 0.0


def to_string(value: Value, budget: Budget) -> str:
    """Convert to a text, as `toString` does."""
    return value if isinstance(value, str) else printing.show(value, budget)


def to_strings(value: Value, budget: Budget) -> Strings:
    """Convert a list to texts without its nils; anything else becomes the only element."""
    if value is None:
        return Strings()
    if isinstance(value, list):
        return Strings([to_string(item, budget) for item in value if item is not None])
    return Strings([to_string(value, budget)])
