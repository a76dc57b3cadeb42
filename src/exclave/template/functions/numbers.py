"""sprig: arithmetic on integers and decimals, conversions, and lists of numbers."""

import decimal
import math

from exclave.template import reals
from exclave.template.functions.convert import to_float, to_int64, to_string
from exclave.template.functions.signature import Env, Param, Registry
from exclave.template.literals import MAX_INT, MIN_INT
from exclave.template.problems import Fault
from exclave.template.values import Int64, Ints, Value, wrap_int64

NUMBERS = Registry()
ANY, INT, TEXT, FLOAT = Param.ANY, Param.INT, Param.TEXT, Param.FLOAT

_DECIMALS = decimal.Context(prec=1000, Emax=9999, Emin=-9999, traps=[])
_DIVISION_PLACES = decimal.Decimal(1).scaleb(-16)


@NUMBERS.add("atoi", takes=(TEXT,))
def atoi(text: str) -> int:
    """Return a decimal string as an int, at most the largest one; anything else is 0."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit()):
        return 0
    digits = digits.lstrip("0")[: len(str(MAX_INT)) + 1] or "0"
    number = -int(digits) if text[0] == "-" else int(digits)
    return max(MIN_INT, min(MAX_INT, number))


@NUMBERS.add("int", takes=(ANY,))
def to_int(value: Value) -> int:
    """Return the value as an int, or 0 if it cannot be converted."""
    return int(to_int64(value))


@NUMBERS.add("int64", takes=(ANY,))
def to_long(value: Value) -> Int64:
    """Return the value as an int64, or 0 if it cannot be converted."""
    return to_int64(value)


@NUMBERS.add("float64", takes=(ANY,))
def to_double(value: Value) -> float:
    """Return the value as a float64, or 0 if it cannot be converted."""
    return to_float(value)


@NUMBERS.add_with_env("toDecimal", takes=(ANY,))
def from_octal(env: Env, value: Value) -> Int64:
    """Return the value of a Unix octal number."""
    text = to_string(value, env.budget)
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not digits or len(digits) > 22 or not set(digits) <= set("01234567"):  # noqa: PLR2004 - 64 bits
        return Int64(0)
    number = int(text, 8)
    return Int64(number if MIN_INT <= number <= MAX_INT else 0)


@NUMBERS.add("add", rest=ANY)
def add(*values: Value) -> Int64:
    """Return the sum of integers."""
    return wrap_int64(sum(to_int64(value) for value in values))


@NUMBERS.add("add1", takes=(ANY,))
def add_one(value: Value) -> Int64:
    """Return the integer plus 1."""
    return wrap_int64(to_int64(value) + 1)


@NUMBERS.add("sub", takes=(ANY, ANY))
def subtract(left: Value, right: Value) -> Int64:
    """Return the difference of integers."""
    return wrap_int64(to_int64(left) - to_int64(right))


@NUMBERS.add("mul", takes=(ANY,), rest=ANY)
def multiply(*values: Value) -> Int64:
    """Return the product of integers."""
    product = Int64(1)
    for value in values:
        product = wrap_int64(product * to_int64(value))
    return product


@NUMBERS.add("div", takes=(ANY, ANY))
def divide(left: Value, right: Value) -> Int64:
    """Return the quotient of integers, rounded towards zero."""
    quotient, _ = _divide(to_int64(left), to_int64(right))
    return wrap_int64(quotient)


@NUMBERS.add("mod", takes=(ANY, ANY))
def modulo(left: Value, right: Value) -> Int64:
    """Return the remainder, with the sign of the dividend."""
    _, remainder = _divide(to_int64(left), to_int64(right))
    return Int64(remainder)


def _divide(left: int, right: int) -> tuple[int, int]:
    if right == 0:
        raise Fault("division by zero")
    quotient = abs(left) // abs(right)
    if (left < 0) != (right < 0):
        quotient = -quotient
    return quotient, left - quotient * right


@NUMBERS.add("max", "biggest", takes=(ANY,), rest=ANY)
def largest(*values: Value) -> Int64:
    """Return the largest integer."""
    return max(to_int64(value) for value in values)


@NUMBERS.add("min", takes=(ANY,), rest=ANY)
def smallest(*values: Value) -> Int64:
    """Return the smallest integer."""
    return min(to_int64(value) for value in values)


@NUMBERS.add("maxf", takes=(ANY,), rest=ANY)
def largest_float(*values: Value) -> float:
    """Return the largest float."""
    numbers = [to_float(value) for value in values]
    return math.nan if any(map(math.isnan, numbers)) else max(numbers, key=_order)


@NUMBERS.add("minf", takes=(ANY,), rest=ANY)
def smallest_float(*values: Value) -> float:
    """Return the smallest float."""
    numbers = [to_float(value) for value in values]
    return math.nan if any(map(math.isnan, numbers)) else min(numbers, key=_order)


def _order(number: float) -> tuple[float, float]:
    """Return a sort key that orders -0 before +0."""
    return number, math.copysign(1, number)


@NUMBERS.add("addf", rest=ANY)
def add_floats(*values: Value) -> float:
    """Return the sum of decimals."""
    total = decimal.Decimal(0)
    for value in values:
        total = _DECIMALS.add(total, _decimal(value))
    return float(total) + 0.0


@NUMBERS.add("add1f", takes=(ANY,))
def add_one_float(value: Value) -> float:
    """Return the decimal plus 1."""
    return add_floats(value, 1)


@NUMBERS.add("subf", takes=(ANY,), rest=ANY)
def subtract_floats(first: Value, *values: Value) -> float:
    """Return the difference of decimals."""
    total = _decimal(first)
    for value in values:
        total = _DECIMALS.subtract(total, _decimal(value))
    return float(total) + 0.0


@NUMBERS.add("mulf", takes=(ANY,), rest=ANY)
def multiply_floats(first: Value, *values: Value) -> float:
    """Return the product of decimals."""
    product = _decimal(first)
    for value in values:
        product = _DECIMALS.multiply(product, _decimal(value))
    return float(product) + 0.0


@NUMBERS.add("divf", takes=(ANY,), rest=ANY)
def divide_floats(first: Value, *values: Value) -> float:
    """Return the quotient of decimals, to 16 places."""
    quotient = _decimal(first)
    for value in values:
        divisor = _decimal(value)
        if divisor == 0:
            raise Fault("division by zero")
        exact = _DECIMALS.divide(quotient, divisor)
        quotient = exact.quantize(_DIVISION_PLACES, decimal.ROUND_HALF_UP, _DECIMALS)
    return float(quotient) + 0.0


def _decimal(value: Value) -> decimal.Decimal:
    number = to_float(value)
    if not math.isfinite(number):
        raise Fault("an infinite number has no decimal form")
    return decimal.Decimal(repr(number))


@NUMBERS.add("floor", takes=(ANY,))
def floor(value: Value) -> float:
    """Return the number rounded down."""
    number = to_float(value)
    return math.copysign(math.floor(number), number) if math.isfinite(number) else number


@NUMBERS.add("ceil", takes=(ANY,))
def ceil(value: Value) -> float:
    """Return the number rounded up."""
    number = to_float(value)
    return math.copysign(math.ceil(number), number) if math.isfinite(number) else number


@NUMBERS.add("round", takes=(ANY, INT), rest=FLOAT)
def round_to(value: Value, places: int, *limit: float) -> float:
    """Return the number rounded to some places; fractions from `limit` (0.5) on go up."""
    power = reals.power_of_ten(places)
    digit = power * to_float(value)
    if not math.isfinite(digit) or power == 0:
        return math.nan
    fraction = digit - math.trunc(digit)
    whole = math.ceil(digit) if fraction >= (limit[0] if limit else 0.5) else math.floor(digit)
    return math.copysign(whole, digit) / power


@NUMBERS.add_with_env("until", takes=(INT,))
def until(env: Env, stop: int) -> Ints:
    """Return the integers from 0 up (or down) to a number, exclusive."""
    return until_step(env, 0, stop, -1 if stop < 0 else 1)


@NUMBERS.add_with_env("untilStep", takes=(INT, INT, INT))
def until_step(env: Env, start: int, stop: int, step: int) -> Ints:
    """Return the integers from start to stop, exclusive, by a step."""
    if step == 0 or (stop < start) != (step < 0):
        return Ints()
    numbers = range(start, stop, step)
    env.budget.check_items(min(len_of(numbers), 1 << 40))
    return Ints(numbers)


def len_of(numbers: range) -> int:
    """Return the length of a range of any size."""
    return max(0, -((numbers.start - numbers.stop) // numbers.step))


@NUMBERS.add_with_env("seq", rest=INT)
def sequence(env: Env, *params: int) -> str:
    """Return integers separated by spaces, like the shell's `seq`."""
    match params:
        case (end,):
            step = -1 if end < 1 else 1
            numbers = until_step(env, 1, end + step, step)
        case (start, end):
            step = -1 if end < start else 1
            numbers = until_step(env, start, end + step, step)
        case (start, step, end):
            if end < start and step > 0:
                return ""
            numbers = until_step(env, start, end + (-1 if end < start else 1), step)
        case _:
            return ""
    return " ".join(str(number) for number in numbers)
