"""Printing of values as Go's `fmt` does it: maps by key, shortest floats, both forms of nil."""

import math

from exclave.template.limits import Budget
from exclave.template.problems import Fault
from exclave.template.values import Byte, Int64, Time, Uint64, Value, Version, check_int, type_of

_LARGE_EXPONENT = 6
_SMALL_EXPONENT = -4
_BYTES_PER_STEP = 256


def format_float(number: float, *, largest: int = _LARGE_EXPONENT) -> str:
    """Return the shortest text that parses back to the float, as `%v` does."""
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "+Inf" if number > 0 else "-Inf"
    sign, digits, exponent = shortest(number)
    if exponent < _SMALL_EXPONENT or exponent >= largest:
        return sign + _exponential(digits, exponent)
    return sign + plain(digits, exponent)


def shortest(number: float) -> tuple[str, str, int]:
    """Return the sign, the significant digits and the decimal exponent of the first digit."""
    text = repr(abs(number))
    mantissa, _, power = text.partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = whole + fraction
    exponent = len(whole) - 1 + (int(power) if power else 0)
    stripped = digits.lstrip("0")
    if not stripped:
        return ("-" if math.copysign(1, number) < 0 else "", "0", 0)
    exponent -= len(digits) - len(stripped)
    return ("-" if number < 0 else "", stripped.rstrip("0") or "0", exponent)


def plain(digits: str, exponent: int) -> str:
    """Return digits without an exponent."""
    if exponent < 0:
        return "0." + "0" * (-exponent - 1) + digits
    if len(digits) <= exponent + 1:
        return digits + "0" * (exponent + 1 - len(digits))
    return f"{digits[: exponent + 1]}.{digits[exponent + 1 :]}"


def _exponential(digits: str, exponent: int) -> str:
    mantissa = digits[0] + (f".{digits[1:]}" if len(digits) > 1 else "")
    return f"{mantissa}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"


def format_time(time: Time) -> str:
    """Return a time as Go's `Time.String` prints it."""
    fraction = f".{time.microsecond:06d}".rstrip("0").rstrip(".")
    return f"{time.year:04d}-{time:%m-%d %H:%M:%S}{fraction} +0000 UTC"


def show(value: Value, budget: Budget) -> str:
    """Return a value as `%v` prints it; nil is `<nil>`."""
    pieces: list[str] = []
    _Writer(budget, pieces).write(value)
    return "".join(pieces)


def sprint(values: list[Value], budget: Budget) -> str:
    """Return values joined as `print` does: a space between two neighbours that are not strings."""
    pieces: list[str] = []
    writer = _Writer(budget, pieces)
    for number, value in enumerate(values):
        if number and not isinstance(value, str) and not isinstance(values[number - 1], str):
            pieces.append(" ")
        writer.write(value)
    return "".join(pieces)


def sprintln(values: list[Value], budget: Budget) -> str:
    """Return values joined as `println` does: spaces between all, a newline at the end."""
    return " ".join(show(value, budget) for value in values) + "\n"


class _Writer:
    """Builds the text of a value and raises when it grows too large."""

    def __init__(self, budget: Budget, pieces: list[str]) -> None:
        self._budget = budget
        self._pieces = pieces
        self._size = 0

    def write(self, value: Value) -> None:
        match value:
            case list():
                self._group("[", [(None, item) for item in value])
            case dict():
                self._group("map[", [(key, value[key]) for key in sort_keys(value)])
            case _:
                self._add(show_scalar(value))

    def _group(self, opening: str, items: list[tuple[str | None, Value]]) -> None:
        self._budget.enter()
        self._add(opening)
        for number, (key, item) in enumerate(items):
            if number:
                self._add(" ")
            if key is not None:
                self._add(f"{key}:")
            self.write(item)
        self._add("]")
        self._budget.depth -= 1

    def _add(self, piece: str) -> None:
        self._budget.spend(1 + len(piece) // _BYTES_PER_STEP)
        self._size += len(piece)
        self._budget.refuse_text(self._size)
        self._pieces.append(piece)


def show_scalar(value: Value) -> str:
    """Return the text of a value that is not a list or a map."""
    match value:
        case None:
            return "<nil>"
        case bool():
            return "true" if value else "false"
        case str():
            return value
        case float():
            return format_float(value)
        case Int64() | Byte() | Uint64() | int():
            return str(check_int(value))
        case Time():
            return format_time(value)
        case Version():
            return value.text
        case _:
            raise Fault(f"a value of type {type_of(value)} cannot be printed")


def sort_keys(items: dict[str, Value]) -> list[str]:
    """Return keys ordered by bytes, as Go does; raise if a key is not a string."""
    for key in items:
        if not isinstance(key, str):
            raise Fault("a map has a key that is not a text")
    return sorted(items, key=_order)


def _order(key: str) -> bytes:
    return key.encode("utf-8", "surrogatepass")
