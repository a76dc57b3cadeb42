"""Floats in binary and hexadecimal form, as Go's `%b` and `%x` print them."""

import math

from exclave.template import printing

_FRACTION_BITS = 52
_HEX_DIGITS = 13
_DIGIT_BITS = 4
_SMALLEST_EXPONENT = -1074
_MOST_PLACES = 400


def write_binary(number: float, verb: str, precision: int | None) -> str:
    """Return the mantissa and the power of two."""
    if not math.isfinite(number):
        return printing.format_float(number)
    sign = "-" if math.copysign(1, number) < 0 else ""
    mantissa, exponent = _split(abs(number))
    if verb == "b":
        exponent = exponent if mantissa else _SMALLEST_EXPONENT + _FRACTION_BITS
        return f"{sign}{mantissa}p{exponent - _FRACTION_BITS:+d}"
    text = sign + _hexadecimal(mantissa, exponent, precision)
    return text.upper() if verb == "X" else text


def _split(number: float) -> tuple[int, int]:
    """Return the mantissa as an integer of 53 bits, and the exponent of its first bit."""
    if number == 0:
        return 0, 0
    fraction, exponent = math.frexp(number)
    return int(fraction * (1 << (_FRACTION_BITS + 1))), exponent - 1


def _hexadecimal(mantissa: int, exponent: int, precision: int | None) -> str:
    if precision is not None and precision < _HEX_DIGITS:
        mantissa = _round(mantissa, (_HEX_DIGITS - precision) * _DIGIT_BITS)
        if mantissa >> (_FRACTION_BITS + 1):
            mantissa >>= 1
            exponent += 1
    digits = f"{mantissa & ((1 << _FRACTION_BITS) - 1):0{_HEX_DIGITS}x}"
    digits = digits.rstrip("0") if precision is None else digits[:precision].ljust(precision, "0")
    point = f".{digits}" if digits else ""
    return f"0x{mantissa >> _FRACTION_BITS}{point}p{exponent:+03d}"


def _round(mantissa: int, bits: int) -> int:
    """Return the number without its last bits, rounded to even."""
    half, rest = 1 << (bits - 1), mantissa & ((1 << bits) - 1)
    kept = mantissa >> bits
    if rest > half or (rest == half and kept & 1):
        kept += 1
    return kept << bits


def power_of_ten(places: int) -> float:
    """Return a power of ten computed by squaring, with the same rounding errors as Go."""
    left = min(abs(places), _MOST_PLACES)
    base, base_exponent = math.frexp(10.0)
    result, exponent = 1.0, 0
    while left:
        if left & 1:
            result *= base
            exponent += base_exponent
        base *= base
        base_exponent *= 2
        if base < 0.5:  # noqa: PLR2004 - a fraction of frexp
            base *= 2
            base_exponent -= 1
        left >>= 1
    if places < 0:
        result, exponent = 1 / result, -exponent
    try:
        return math.ldexp(result, exponent)
    except OverflowError:
        return math.inf
