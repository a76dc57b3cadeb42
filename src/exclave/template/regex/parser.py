"""The parser for the syntax of Go's regexp package (RE2)."""

from dataclasses import dataclass, replace

from exclave.template.regex.classes import PERL, POSIX, find_category, negate
from exclave.template.regex.tree import (
    LAST,
    Anchor,
    Assert,
    BadPattern,
    Chars,
    Charset,
    Choice,
    Group,
    Repeat,
    Sequence,
    Tree,
)

_MOST_REPEATS = 1000
_MOST_GROUPS = 100
_DEEPEST = 100
_SIMPLE = {"a": 7, "f": 12, "t": 9, "n": 10, "r": 13, "v": 11}
_ANCHORS = {
    "A": Anchor.TEXT_START,
    "z": Anchor.TEXT_END,
    "b": Anchor.BOUNDARY,
    "B": Anchor.NO_BOUNDARY,
}
_NEWLINE = (10, 10)


@dataclass(frozen=True, slots=True)
class _Flags:
    folds: bool = False
    lines: bool = False
    dot_all: bool = False
    swaps: bool = False


class Parser:
    """Parses one pattern."""

    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0
        self._flags, self._depth = _Flags(), 0
        self.groups = 0
        self.names: dict[str, int] = {}

    def run(self) -> Tree:
        """Return the whole pattern, parsed."""
        tree = self._choice()
        if self._at < len(self._text):
            raise BadPattern("unexpected )")
        return tree

    def _peek(self, length: int = 1) -> str:
        return self._text[self._at : self._at + length]

    def _next(self) -> str:
        if self._at >= len(self._text):
            raise BadPattern("the pattern ends too early")
        self._at += 1
        return self._text[self._at - 1]

    def _choice(self) -> Tree:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise BadPattern("the pattern nests too deeply")
        options = [self._sequence()]
        while self._peek() == "|":
            self._at += 1
            options.append(self._sequence())
        self._depth -= 1
        return options[0] if len(options) == 1 else Choice(tuple(options))

    def _sequence(self) -> Tree:
        items: list[Tree] = []
        while self._at < len(self._text) and self._peek() not in ("|", ")"):
            if self._peek(2) == "\\Q":
                items += self._quoted()
                continue
            atom = self._atom()
            if atom is not None:
                items.append(self._repeated(atom))
        return Sequence(tuple(items))

    def _quoted(self) -> list[Tree]:
        end = self._text.find("\\E", self._at + 2)
        stop = len(self._text) if end < 0 else end
        chars: list[Tree] = [self._literal(char) for char in self._text[self._at + 2 : stop]]
        self._at = len(self._text) if end < 0 else end + 2
        if chars:
            chars[-1] = self._repeated(chars[-1])
        return chars

    def _literal(self, char: str) -> Chars:
        return Chars(Charset([(ord(char), ord(char))], folds=self._flags.folds))

    def _repeated(self, atom: Tree) -> Tree:
        seen = False
        while True:
            start = self._at
            bounds = self._bounds()
            if bounds is None:
                return atom
            if seen:
                raise BadPattern(f"nested repetition {self._text[start : self._at]}")
            lazy = self._peek() == "?"
            self._at += 1 if lazy else 0
            atom = Repeat(atom, bounds[0], bounds[1], lazy=lazy != self._flags.swaps)
            seen = True

    def _bounds(self) -> tuple[int, int | None] | None:
        char = self._peek()
        if char and char in "*+?":
            self._at += 1
            return {"*": (0, None), "+": (1, None), "?": (0, 1)}[char]
        return self._counted() if char == "{" else None

    def _counted(self) -> tuple[int, int | None] | None:
        """Parse `{n,m}`; with anything else after it, a brace is a literal."""
        end = self._text.find("}", self._at)
        low, comma, high = self._text[self._at + 1 : max(end, 0)].partition(",")
        if end < 0 or not _is_number(low) or (high and not _is_number(high)):
            return None
        self._at = end + 1
        least = int(low)
        most = (int(high) if high else None) if comma else least
        if max(least, most or 0) > _MOST_REPEATS or (most is not None and most < least):
            raise BadPattern("invalid repeat count")
        return least, most

    def _atom(self) -> Tree | None:
        char = self._next()
        match char:
            case "(":
                return self._group()
            case "[":
                return Chars(self._bracket())
            case ".":
                hidden = [] if self._flags.dot_all else [_NEWLINE]
                return Chars(Charset(hidden, negated=True))
            case "^":
                return Assert(Anchor.LINE_START if self._flags.lines else Anchor.TEXT_START)
            case "$":
                return Assert(Anchor.LINE_END if self._flags.lines else Anchor.TEXT_END)
            case "\\":
                return self._escape()
            case "*" | "+" | "?":
                raise BadPattern(f"nothing to repeat before {char}")
            case _:
                return self._literal(char)

    def _group(self) -> Tree | None:
        outer = self._flags
        number = 0
        if self._peek() != "?":
            number = self._add_group("")
        elif self._peek(3) == "?P<" or (self._peek(2) == "?<" and self._peek(3)[2:] not in "=!"):
            number = self._add_group(self._group_name())
        else:
            self._at += 1
            if self._read_flags():
                return None
        inner = self._choice()
        if self._peek() != ")":
            raise BadPattern("missing )")
        self._at += 1
        self._flags = outer
        return Group(number, inner) if number else inner

    def _add_group(self, name: str) -> int:
        self.groups += 1
        if self.groups > _MOST_GROUPS:
            raise BadPattern("the pattern has too many groups")
        if name:
            if name in self.names:
                raise BadPattern(f"two groups have the name {name}")
            self.names[name] = self.groups
        return self.groups

    def _group_name(self) -> str:
        start = self._text.index("<", self._at) + 1
        end = self._text.find(">", start)
        name = self._text[start : max(end, start)]
        if end < 0 or not name or not all(c == "_" or (c.isascii() and c.isalnum()) for c in name):
            raise BadPattern("invalid group name")
        self._at = end + 1
        return name

    def _read_flags(self) -> bool:
        """Parse `i)` or `i:`; return whether the flags apply to the rest of the group."""
        flags, on, count = self._flags, True, 0
        names = {"i": "folds", "m": "lines", "s": "dot_all", "U": "swaps"}
        while True:
            char = self._next()
            if char in ":)":
                if not on and not count:
                    raise BadPattern("missing flag after -")
                self._flags = flags
                return char == ")"
            if char == "-" and on:
                on, count = False, 0
            elif char in names:
                flags = replace(flags, **{names[char]: on})
                count += 1
            else:
                raise BadPattern("invalid or unsupported group syntax")

    def _escape(self) -> Tree:
        char = self._next()
        if char in _ANCHORS:
            return Assert(_ANCHORS[char])
        if char in PERL:
            return Chars(Charset(PERL[char], folds=self._flags.folds))
        if char in "pP":
            return Chars(Charset(self._category(char), folds=self._flags.folds))
        code = self._code(char)
        return Chars(Charset([(code, code)], folds=self._flags.folds))

    def _category(self, char: str) -> list[tuple[int, int]]:
        name = self._next()
        if name == "{":
            end = self._text.find("}", self._at)
            if end < 0:
                raise BadPattern("invalid character class")
            name, self._at = self._text[self._at : end], end + 1
        inverted = name.startswith("^") != (char == "P")
        ranges = list(find_category(name.removeprefix("^")))
        return negate(ranges) if inverted else ranges

    def _code(self, char: str) -> int:
        """Return the character that an escape stands for."""
        if char in _SIMPLE:
            return _SIMPLE[char]
        if char == "x":
            return self._hex()
        if char in "01234567" and (char == "0" or self._peek() in tuple("01234567")):
            digits = char
            while len(digits) < 3 and self._peek() in tuple("01234567"):  # noqa: PLR2004 - octal digits
                digits += self._next()
            return int(digits, 8)
        if char.isascii() and not char.isalnum():
            return ord(char)
        raise BadPattern(f"invalid escape \\{char}")

    def _hex(self) -> int:
        if self._peek() == "{":
            end = self._text.find("}", self._at)
            digits, self._at = self._text[self._at + 1 : max(end, 0)], end + 1
        else:
            digits = self._peek(2)
            self._at += 2
            if len(digits) < 2:  # noqa: PLR2004 - two digits
                raise BadPattern("invalid escape \\x")
        if not digits or len(digits) > 8 or not set(digits) <= set("0123456789abcdefABCDEF"):  # noqa: PLR2004
            raise BadPattern("invalid escape \\x")
        code = int(digits, 16)
        if code > LAST:
            raise BadPattern("invalid escape \\x")
        return code

    def _bracket(self) -> Charset:
        negated = self._peek() == "^"
        self._at += 1 if negated else 0
        ranges: list[tuple[int, int]] = []
        first = True
        while first or self._peek() != "]":
            first = False
            ranges += self._bracket_item()
        self._at += 1
        return Charset(ranges, negated=negated, folds=self._flags.folds)

    def _bracket_item(self) -> list[tuple[int, int]]:
        if self._peek(2) == "[:":
            end = self._text.find(":]", self._at)
            if end >= 0:
                return self._posix(end)
        char = self._next()
        if char == "\\" and self._peek() in tuple("dDwWsSpP"):
            kind = self._next()
            return self._category(kind) if kind in "pP" else PERL[kind]
        start = self._code(self._next()) if char == "\\" else ord(char)
        if self._peek() != "-" or self._peek(2)[1:] in ("]", ""):
            return [(start, start)]
        self._at += 1
        char = self._next()
        end = self._code(self._next()) if char == "\\" else ord(char)
        if end < start:
            raise BadPattern("invalid character range")
        return [(start, end)]

    def _posix(self, end: int) -> list[tuple[int, int]]:
        name = self._text[self._at + 2 : end]
        inverted = name.startswith("^")
        if name.removeprefix("^") not in POSIX:
            raise BadPattern(f"invalid character class [:{name}:]")
        self._at = end + 2
        ranges = POSIX[name.removeprefix("^")]
        return negate(ranges) if inverted else ranges


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 5  # noqa: PLR2004 - up to 9999
