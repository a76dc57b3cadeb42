"""Comparison with Go's rules: equal kinds only, no order between bools, no equality of lists."""

from exclave.template.limits import Budget, weigh
from exclave.template.problems import Fault
from exclave.template.text import to_bytes
from exclave.template.values import (
    INTEGERS,
    Kind,
    Value,
    Version,
    kind_of,
    type_of,
)

_BASIC = INTEGERS | {Kind.BOOL, Kind.FLOAT, Kind.STRING}
_NUMBER_HINT = (
    "Numbers of a JSON document are floats; a number without a point is an integer. "
    "Convert one of them: `int64`, `float64`, `toString`."
)


def equal(left: Value, right: Value) -> bool:
    """Return whether two values are equal, as `eq` does; comparing different kinds is an error."""
    first, second = _family(left), _family(right)
    if left is None or right is None:
        return left is None and right is None
    if first != second:
        raise _incompatible(left, right)
    if first is not None:
        return left == right
    if kind_of(left) is not kind_of(right):
        raise Fault(f"non-comparable types {type_of(left)} and {type_of(right)}")
    if isinstance(left, list | dict):
        raise Fault(f"non-comparable type {type_of(left)}", hint="Use `deepEqual`.")
    return left == right


def less(left: Value, right: Value) -> bool:
    """Return whether `left` is less, as `lt` does: numbers of one family, or strings by bytes."""
    first, second = _family(left), _family(right)
    if first is None or second is None:
        raise Fault("invalid type for comparison: there is no order between such values")
    if first != second:
        raise _incompatible(left, right)
    if isinstance(left, bool):
        raise Fault("invalid type for comparison: there is no order between bools")
    if isinstance(left, str) and isinstance(right, str):
        return to_bytes(left) < to_bytes(right)
    if isinstance(left, int | float) and isinstance(right, int | float):
        return left < right
    raise Fault("invalid type for comparison")


def deep_equal(left: Value, right: Value, budget: Budget) -> bool:
    """Return whether two values are deeply equal; types must match too (int is not int64)."""
    budget.spend(1 + weigh(left))
    if type(left) is not type(right):
        return False
    if isinstance(left, list) and isinstance(right, list):
        if len(left) != len(right):
            return False
        budget.enter()
        same = all(deep_equal(a, b, budget) for a, b in zip(left, right, strict=True))
        budget.depth -= 1
        return same
    if isinstance(left, dict) and isinstance(right, dict):
        if left.keys() != right.keys():
            return False
        budget.enter()
        same = all(deep_equal(value, right[key], budget) for key, value in left.items())
        budget.depth -= 1
        return same
    if isinstance(left, Version) and isinstance(right, Version):
        return left.original == right.original
    return left == right


def _family(value: Value) -> str | None:
    """Return the group of kinds that compare with each other; None if there is no basic kind."""
    kind = kind_of(value)
    if kind in INTEGERS:
        return "integer"
    return kind.value if kind in _BASIC else None


def _incompatible(left: Value, right: Value) -> Fault:
    numbers = {_family(left), _family(right)} <= {"integer", Kind.FLOAT.value}
    return Fault(
        f"incompatible types for comparison: {type_of(left)} and {type_of(right)}",
        hint=_NUMBER_HINT if numbers else "",
    )
