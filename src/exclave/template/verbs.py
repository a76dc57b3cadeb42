"""The verbs of `printf`, applied to one value."""

import math
from dataclasses import dataclass

from exclave.template import printing, quoting, reals
from exclave.template.limits import Budget
from exclave.template.problems import Fault
from exclave.template.values import Byte, Time, Uint64, Value, Version, check_int, type_of

_BASES = {"b": "b", "o": "o", "O": "o", "x": "x", "X": "X"}
_PREFIXES = {"b": "0b", "x": "0x", "X": "0X"}
_REAL_VERBS = frozenset("eEfFgG")
_TEXT_VERBS = frozenset("vsxXq")


@dataclass(slots=True)
class Flags:
    """Flags, width and precision of one directive."""

    plus: bool = False
    minus: bool = False
    sharp: bool = False
    space: bool = False
    zero: bool = False
    go_syntax: bool = False
    width: int | None = None
    precision: int | None = None


class Formatter:
    """Formats values with one verb and its flags."""

    def __init__(self, verb: str, flags: Flags, budget: Budget) -> None:
        self._verb = verb
        self._flags = flags
        self._budget = budget

    def write(self, value: Value, *, inside: bool = False) -> str:
        """Return a formatted value; inside a list or map nil is always `<nil>`."""
        self._budget.spend()
        if self._verb == "T":
            return self._pad(self._cut(type_of(value)))
        match value:
            case None:
                return self._write_nil(inside=inside)
            case bool():
                known = self._verb in "tv"
                return self._pad("true" if value else "false") if known else self._bad(value)
            case int():
                return self._write_int(value)
            case float():
                return self._write_real(value)
            case str():
                return self._write_text(value)
            case list() | dict():
                return self._write_group(value)
            case Time() | Version():
                return self._write_text(printing.show_scalar(value))
            case _:
                raise Fault(f"a value of type {type_of(value)} cannot be printed")

    def _write_nil(self, *, inside: bool) -> str:
        if inside:
            return "interface {}(nil)" if self._flags.go_syntax else "<nil>"
        return self._pad("<nil>") if self._verb == "v" else f"%!{self._verb}(<nil>)"

    def _bad(self, value: Value) -> str:
        plain = Formatter("v", self._flags, self._budget)
        return f"%!{self._verb}({type_of(value)}={plain.write(value)})"

    def _write_group(self, value: list[Value] | dict[str, Value]) -> str:
        self._budget.enter()
        if isinstance(value, list):
            items = [self.write(item, inside=True) for item in value]
        else:
            items = [
                f"{self.write(key)}:{self.write(value[key], inside=True)}"
                for key in printing.sort_keys(value)
            ]
        self._budget.depth -= 1
        self._budget.check_text(sum(map(len, items)))
        if self._flags.go_syntax:
            return f"{type_of(value)}{{{', '.join(items)}}}"
        return f"{'map' if isinstance(value, dict) else ''}[{' '.join(items)}]"

    def _write_text(self, text: str) -> str:
        flags = self._flags
        self._budget.check_text(len(text))
        if self._verb not in _TEXT_VERBS:
            return self._bad(text)
        if self._verb in "xX":
            limit, upper = flags.precision, self._verb == "X"
            return self._pad(
                quoting.to_hex(
                    text, upper=upper, limit=limit, spaced=flags.space, sharp=flags.sharp
                )
            )
        text = self._cut(text)
        if self._verb == "s" or (self._verb == "v" and not flags.go_syntax):
            return self._pad(text)
        if flags.sharp and quoting.can_backquote(text):
            return self._pad(f"`{text}`")
        return self._pad(quoting.quote(text, ascii_only=flags.plus))

    def _cut(self, text: str) -> str:
        return text if self._flags.precision is None else text[: self._flags.precision]

    def _pad(self, text: str, *, zero: bool = True) -> str:
        width = self._flags.width
        if width is None or len(text) >= width:
            return text
        self._budget.check_text(width)
        if self._flags.minus:
            return text.ljust(width)
        return text.rjust(width, "0" if zero and self._flags.zero else " ")

    def _write_int(self, number: int) -> str:
        check_int(number)
        match self._verb:
            case "v" if self._flags.go_syntax and isinstance(number, Byte | Uint64):
                return self._pad(f"0x{int(number):x}")
            case "v" | "d" | "b" | "o" | "O" | "x" | "X":
                return self._write_digits(int(number))
            case "c":
                return self._pad(quoting.to_char(number))
            case "q":
                return self._pad(quoting.quote_char(number, ascii_only=self._flags.plus))
            case "U":
                return self._pad(self._unicode(int(number)), zero=False)
            case _:
                return self._bad(number)

    def _unicode(self, number: int) -> str:
        code = number % (1 << 64)
        text = f"U+{code:0{max(4, self._flags.precision or 0)}X}"
        char = quoting.to_char(code)
        shown = self._flags.sharp and char.isprintable() and code == ord(char)
        return f"{text} '{char}'" if shown else text

    def _write_digits(self, number: int) -> str:
        flags = self._flags
        if flags.precision == 0 and number == 0:
            return self._pad("", zero=False)
        digits = format(abs(number), _BASES.get(self._verb, "d"))
        sign = "-" if number < 0 else "+" if flags.plus else " " if flags.space else ""
        least = flags.precision or 0
        if flags.precision is None and flags.zero and not flags.minus and flags.width is not None:
            least = flags.width - len(sign)
        self._budget.check_text(least)
        digits = digits.rjust(least, "0")
        if flags.sharp and self._verb in _PREFIXES:
            digits = _PREFIXES[self._verb] + digits
        elif flags.sharp and self._verb == "o" and not digits.startswith("0"):
            digits = "0" + digits
        elif self._verb == "O":
            digits = "0o" + digits
        return self._pad(sign + digits, zero=False)

    def _write_real(self, number: float) -> str:
        flags = self._flags
        if self._verb == "v":
            text = self._write_general(number)
        elif self._verb in "bxX":
            text = reals.write_binary(number, self._verb, flags.precision)
        elif self._verb not in _REAL_VERBS:
            return self._bad(number)
        elif self._verb in "gG":
            text = self._write_general(number)
            text = text.upper() if self._verb == "G" and math.isfinite(number) else text
        elif math.isfinite(number):
            precision = 6 if flags.precision is None else flags.precision
            self._budget.check_text(precision + 400)
            text = format(number, f".{precision}{self._verb}")
        else:
            text = printing.format_float(number)
        return self._sign_and_pad(text.lstrip("+"), number)

    def _sign_and_pad(self, text: str, number: float) -> str:
        flags = self._flags
        sign = "-" if text.startswith("-") else "+" if flags.plus else " " if flags.space else ""
        body = text.lstrip("-")
        if math.isinf(number) and not sign:
            sign = "+"
        if flags.zero and not flags.minus and flags.width is not None and math.isfinite(number):
            self._budget.check_text(flags.width)
            body = body.rjust(flags.width - len(sign), "0")
        return self._pad(sign + body, zero=False)

    def _write_general(self, number: float) -> str:
        precision = self._flags.precision
        if precision is None or not math.isfinite(number):
            return printing.format_float(number)
        self._budget.check_text(precision)
        return format(number, f".{precision}g")
