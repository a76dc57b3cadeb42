"""JSON as Go writes and reads it: sorted keys, floats in their shortest form, numbers as floats."""

import json
import math

from exclave.template import printing
from exclave.template.limits import Budget
from exclave.template.problems import Fault
from exclave.template.text import finish, is_raw_byte
from exclave.template.values import Time, Value, Version, check_int, type_of

_SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_HTML = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}
_LINE_ENDS = {"\u2028": "\\u2028", "\u2029": "\\u2029"}
_LARGEST = 1e21
_SMALLEST = 1e-6
_LONGEST_NUMBER = 400


def encode(value: Value, budget: Budget, *, html: bool, indent: str = "") -> str:
    """Return a value as JSON."""
    writer = _Writer(budget, html=html, indent=indent)
    writer.write(value, 0)
    return "".join(writer.pieces)


class _Writer:
    """Builds a JSON text."""

    def __init__(self, budget: Budget, *, html: bool, indent: str) -> None:
        self.pieces: list[str] = []
        self._budget = budget
        self._table = _SHORT | _LINE_ENDS | (_HTML if html else {})
        self._indent = indent
        self._size = 0

    def write(self, value: Value, depth: int) -> None:
        match value:
            case None:
                self._add("null")
            case bool():
                self._add("true" if value else "false")
            case int():
                self._add(str(check_int(value)))
            case float():
                self._add(format_number(value))
            case str():
                self._add(self._quote(value))
            case list():
                self._group("[]", [("", item) for item in value], depth)
            case dict():
                colon = ": " if self._indent else ":"
                pairs = [
                    (self._quote(key) + colon, value[key]) for key in printing.sort_keys(value)
                ]
                self._group("{}", pairs, depth)
            case Time():
                fraction = f".{value.microsecond:06d}".rstrip("0").rstrip(".")
                self._add(f'"{value.year:04d}-{value:%m-%dT%H:%M:%S}{fraction}Z"')
            case Version():
                self._add(self._quote(value.text))
            case _:
                raise Fault(f"a value of type {type_of(value)} has no JSON form")

    def _group(self, marks: str, items: list[tuple[str, Value]], depth: int) -> None:
        self._budget.enter()
        self._add(marks[0])
        for number, (start, item) in enumerate(items):
            self._add(("," if number else "") + self._line(depth + 1) + start)
            self.write(item, depth + 1)
        self._add((self._line(depth) if items else "") + marks[1])
        self._budget.depth -= 1

    def _line(self, depth: int) -> str:
        return "\n" + self._indent * depth if self._indent else ""

    def _quote(self, text: str) -> str:
        return '"' + "".join(self._escape(char) for char in text) + '"'

    def _escape(self, char: str) -> str:
        if char in self._table:
            return self._table[char]
        if char < " ":
            return f"\\u{ord(char):04x}"
        return "\\ufffd" if is_raw_byte(char) else char

    def _add(self, piece: str) -> None:
        self._size += len(piece)
        self._budget.spend(1 + len(piece) // 16)
        self._budget.refuse_text(self._size)
        self.pieces.append(piece)


def format_number(number: float) -> str:
    """Return a float as Go's JSON encoder prints it."""
    if not math.isfinite(number):
        raise Fault("an infinite number has no JSON form")
    sign, digits, exponent = printing.shortest(number)
    if number != 0 and not _SMALLEST <= abs(number) < _LARGEST:
        mantissa = digits[0] + (f".{digits[1:]}" if len(digits) > 1 else "")
        power = f"+{exponent}" if exponent > 0 else str(exponent)
        return f"{sign}{mantissa}e{power}"
    return sign + printing.plain(digits, exponent)


def decode(text: str, budget: Budget) -> Value:
    """Return strictly parsed JSON; every number is a float."""
    budget.check_text(len(text))
    budget.spend(len(text) // 4)
    decoder = json.JSONDecoder(
        parse_int=_read_number, parse_float=_read_number, parse_constant=_refuse
    )
    stripped = finish(text).strip(" \t\r\n")
    if text and not stripped:
        raise json.JSONDecodeError("there is no value", text, 0)
    return decoder.decode(stripped)


def _read_number(text: str) -> float:
    number = float(text) if len(text) <= _LONGEST_NUMBER else math.inf
    if math.isinf(number):
        raise json.JSONDecodeError("this number is too large", text, 0)
    return number


def _refuse(text: str) -> Value:
    raise json.JSONDecodeError(f"{text} is not JSON", text, 0)
