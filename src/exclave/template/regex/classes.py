"""Named character classes: Perl's, POSIX's, and Unicode's general categories."""

import functools
import unicodedata

from exclave.template.regex.tree import LAST, BadPattern, Charset, complement

Ranges = list[tuple[int, int]]


def _of(text: str) -> Ranges:
    """Return the ranges of pairs of first and last character."""
    return [(ord(text[at]), ord(text[at + 1])) for at in range(0, len(text), 2)]


_DIGIT = _of("09")
_WORD = _of("09AZ__az")
_SPACE = _of("\t\n\f\r  ")

PERL: dict[str, Ranges] = {
    "d": _DIGIT, "D": complement(_DIGIT),
    "w": _WORD, "W": complement(_WORD),
    "s": _SPACE, "S": complement(_SPACE),
}  # fmt: skip

POSIX: dict[str, Ranges] = {
    "alnum": _of("09AZaz"),
    "alpha": _of("AZaz"),
    "ascii": _of("\x00\x7f"),
    "blank": _of("\t\t  "),
    "cntrl": _of("\x00\x1f\x7f\x7f"),
    "digit": _DIGIT,
    "graph": _of("!~"),
    "lower": _of("az"),
    "print": _of(" ~"),
    "punct": _of("!/:@[`{~"),
    "space": _of("\t\r  "),
    "upper": _of("AZ"),
    "word": _WORD,
    "xdigit": _of("09AFaf"),
}

_CATEGORIES = frozenset(
    {
        "C", "Cc", "Cf", "Co", "Cs", "L", "Ll", "Lm", "Lo", "Lt", "Lu", "M", "Mc", "Me", "Mn", "N",
        "Nd", "Nl", "No", "P", "Pc", "Pd", "Pe", "Pf", "Pi", "Po", "Ps", "S", "Sc", "Sk", "Sm",
        "So", "Z", "Zl", "Zp", "Zs",
    }
)  # fmt: skip


@functools.lru_cache(maxsize=64)
def find_category(name: str) -> tuple[tuple[int, int], ...]:
    """Return the ranges of a general category; Unicode scripts are not supported."""
    if name == "Any":
        return ((0, LAST),)
    if name not in _CATEGORIES:
        raise BadPattern(f"the character class {name!r} is not available")
    ranges: Ranges = []
    for code in range(LAST + 1):
        if unicodedata.category(chr(code)).startswith(name):
            if ranges and ranges[-1][1] == code - 1:
                ranges[-1] = (ranges[-1][0], code)
            else:
                ranges.append((code, code))
    return tuple(ranges)


def negate(ranges: Ranges) -> Ranges:
    """Return the ranges of all other characters."""
    return Charset(ranges, negated=True).ranges()
