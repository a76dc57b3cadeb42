"""`printf` format strings: directives, argument indexes, and Go's error markers."""

from exclave.template.limits import Budget
from exclave.template.values import Value, kind_of, type_of
from exclave.template.verbs import Flags, Formatter

_FLAGS = {"#": "sharp", "+": "plus", "-": "minus", " ": "space", "0": "zero"}
_LARGEST = 1_000_000


def sprintf(pattern: str, args: list[Value], budget: Budget) -> str:
    """Return the text that Go's `Sprintf` returns; mistakes are marked in the result, as in Go."""
    return _Printer(pattern, args, budget).run()


class _Printer:
    """Formats the arguments in one pass over the format string."""

    def __init__(self, pattern: str, args: list[Value], budget: Budget) -> None:
        self._pattern = pattern
        self._args = args
        self._budget = budget
        self._at = 0
        self._next = 0
        self._reordered = False
        self._index_is_good = True
        self._after_index = False
        self._pieces: list[str] = []
        self._size = 0

    def run(self) -> str:
        while self._at < len(self._pattern):
            percent = self._pattern.find("%", self._at)
            if percent < 0:
                self._add(self._pattern[self._at :])
                break
            self._add(self._pattern[self._at : percent])
            self._at = percent + 1
            self._parse_directive()
        if not self._reordered and self._next < len(self._args):
            self._add(self._show_extra())
        return "".join(self._pieces)

    def _add(self, piece: str) -> None:
        self._size += len(piece)
        self._budget.spend()
        self._budget.refuse_text(self._size)
        self._pieces.append(piece)

    def _peek(self) -> str:
        return self._pattern[self._at : self._at + 1]

    def _parse_directive(self) -> None:
        self._index_is_good = True
        self._after_index = False
        flags = self._parse_flags()
        self._parse_index()
        self._parse_width(flags)
        self._parse_precision(flags)
        if not self._after_index:
            self._parse_index()
        verb = self._peek()
        self._at += 1
        if not verb:
            self._add("%!(NOVERB)")
        elif verb == "%":
            self._add("%")
        elif not self._index_is_good:
            self._add(f"%!{verb}(BADINDEX)")
        elif self._next >= len(self._args):
            self._add(f"%!{verb}(MISSING)")
        else:
            self._write(verb, flags)

    def _write(self, verb: str, flags: Flags) -> None:
        value = self._args[self._next]
        self._next += 1
        if verb == "v":
            flags.go_syntax, flags.sharp = flags.sharp, False
            flags.plus = False
        self._add(Formatter(verb, flags, self._budget).write(value))

    def _parse_flags(self) -> Flags:
        flags = Flags()
        while self._peek() in _FLAGS and self._peek():
            setattr(flags, _FLAGS[self._peek()], True)
            self._at += 1
        if flags.minus:
            flags.zero = False
        return flags

    def _parse_number(self) -> int | None:
        start = self._at
        while self._peek().isascii() and self._peek().isdigit():
            self._at += 1
        digits = self._pattern[start : self._at]
        if not digits or len(digits) > len(str(_LARGEST)):
            return None
        number = int(digits)
        return number if number <= _LARGEST else None

    def _parse_index(self) -> None:
        """Parse `[n]`, the index of the next argument."""
        if self._peek() != "[":
            return
        self._reordered = True
        end = self._pattern.find("]", self._at)
        if end < 0:
            self._at += 1
            self._index_is_good = False
            return
        digits = self._pattern[self._at + 1 : end]
        self._at = end + 1
        self._after_index = True
        good = digits.isascii() and digits.isdigit() and len(digits) < len(str(_LARGEST))
        if good and 1 <= int(digits) <= len(self._args):
            self._next = int(digits) - 1
        else:
            self._index_is_good = False

    def _parse_star(self) -> int | None:
        """Return a width or precision that `*` takes from the arguments."""
        self._at += 1
        self._after_index = False
        if self._next >= len(self._args):
            return None
        value = self._args[self._next]
        self._next += 1
        if not isinstance(value, int) or isinstance(value, bool) or abs(value) > _LARGEST:
            return None
        return int(value)

    def _parse_width(self, flags: Flags) -> None:
        if self._peek() == "*":
            flags.width = self._parse_star()
            if flags.width is None:
                self._add("%!(BADWIDTH)")
            elif flags.width < 0:
                flags.width, flags.minus, flags.zero = -flags.width, True, False
            return
        flags.width = self._parse_number()
        if self._after_index and flags.width is not None:
            self._index_is_good = False

    def _parse_precision(self, flags: Flags) -> None:
        if self._peek() != ".":
            return
        self._at += 1
        if self._after_index:
            self._index_is_good = False
        self._parse_index()
        if self._peek() == "*":
            flags.precision = self._parse_star()
            if flags.precision is not None and flags.precision < 0:
                flags.precision = None
            if flags.precision is None:
                self._add("%!(BADPREC)")
            return
        number = self._parse_number()
        flags.precision = 0 if number is None else number

    def _show_extra(self) -> str:
        shown = []
        for value in self._args[self._next :]:
            kind_of(value)
            plain = Formatter("v", Flags(), self._budget).write(value)
            shown.append("<nil>" if value is None else f"{type_of(value)}={plain}")
        return f"%!(EXTRA {', '.join(shown)})"
