"""Conversion of any value to a number or a string, as sprig's helpers do it."""

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
    """Return the value as an int64, or 0 if it cannot be converted."""
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
    """Return a float without its fraction; out of range is the smallest int64, as on amd64."""
    if not math.isfinite(value) or not MIN_INT <= value < MAX_INT:
        return Int64(MIN_INT)
    return Int64(int(value))


def to_float(value: Value) -> float:
    """Return the value as a float, or 0 if it cannot be converted."""
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
    """Return the value as a string, as `toString` does."""
    return value if isinstance(value, str) else printing.show(value, budget)


def to_strings(value: Value, budget: Budget) -> Strings:
    """Return the elements that are not nil as strings; any other value as a single element."""
    if value is None:
        return Strings()
    if isinstance(value, list):
        return Strings([to_string(item, budget) for item in value if item is not None])
    return Strings([to_string(value, budget)])
