"""Versions of charts, and the one that a constraint chooses, by the rules that Helm follows."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Self

_VERSION = re.compile(
    r"v?(\d{1,18})(?:\.(\d{1,18}))?(?:\.(\d{1,18}))?"
    r"(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+([0-9A-Za-z.-]+))?"
)
_PART = r"v?(?:[0-9]+|[xX*])(?:\.(?:[0-9]+|[xX*])){0,2}(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?"
_TERM = re.compile(rf"(=||!=|>|<|>=|=>|<=|=<|~|~>|\^)\s*({_PART})")
_HYPHEN = re.compile(rf"\s*({_PART})\s+-\s+({_PART})\s*")
_WILD = frozenset("xX*")
_EMPTY = (0, 0, 0)
_BOUNDS = frozenset({"!=", ">", "<", "<=", "=<"})


_Word = tuple[bool, int, str]


@dataclass(frozen=True, slots=True, order=True)
class ChartVersion:
    """A semantic version; what follows `+` does not count when two are compared."""

    numbers: tuple[int, int, int]
    is_stable: bool = True
    pre: tuple[_Word, ...] = ()
    """The words of a pre-release: numbers come before texts."""
    text: str = field(default="", compare=False)

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Return the version that a text spells, also with fewer than three numbers."""
        match = _VERSION.fullmatch(text.strip())
        if match is None:
            return None
        numbers = (int(match[1]), int(match[2] or 0), int(match[3] or 0))
        return cls(numbers, not match[4], _split_words(match[4] or ""), text.strip())


def _split_words(pre: str) -> tuple[_Word, ...]:
    words = pre.split(".") if pre else []
    return tuple(
        (not word.isdecimal(), int(word) if word.isdecimal() else 0, word) for word in words
    )


Accepts = Callable[[ChartVersion], bool]


def choose_version(versions: Iterable[str], wanted: str) -> str | None:
    """Return the version of a list that Helm would choose: exactly `wanted`, or the newest fit.

    Without a wish, and by a constraint that names no pre-release, no pre-release is chosen.
    `ValueError` says that `wanted` is neither a version nor a constraint.
    """
    listed = list(versions)
    if wanted and wanted in listed:
        return wanted
    accepts = parse_constraint(wanted or "*")
    known = [version for version in map(ChartVersion.parse, listed) if version is not None]
    fitting = [version for version in known if accepts(version)]
    return max(fitting).text if fitting else None


def parse_constraint(text: str) -> Accepts:
    """Return what a constraint accepts: `^1.2`, `~1.2.3`, `>=1.0 <2.0`, `1.x || 3.x`."""
    choices = [_parse_terms(part, text) for part in text.split("||")]
    return lambda version: any(all(term(version) for term in terms) for terms in choices)


def _parse_terms(part: str, text: str) -> list[Accepts]:
    """Return all that one choice demands; it accepts pre-releases if any term names one."""
    terms = _split_terms(part, text)
    if not any(low.pre for low, _ in terms):
        return [lambda version: not version.pre, *(accepts for _, accepts in terms)]
    return [accepts for _, accepts in terms]


def _split_terms(part: str, text: str) -> list[tuple[ChartVersion, Accepts]]:
    hyphen = _HYPHEN.fullmatch(part)
    if hyphen is not None:
        return [_make_term(">=", hyphen[1]), _make_term("<=", hyphen[2])]
    terms, end = [], 0
    stripped = part.strip().strip(",").strip()
    for match in _TERM.finditer(stripped):
        if stripped[end : match.start()].strip(" ,"):
            break
        terms.append(_make_term(match[1], match[2]))
        end = match.end()
    if not terms or stripped[end:].strip():
        message = f"`{text}` is neither a version nor a constraint"
        raise ValueError(message)
    return terms


def _make_term(operator: str, text: str) -> tuple[ChartVersion, Accepts]:
    core, _, _ = text.removeprefix("v").partition("+")
    core, dash, pre = core.partition("-")
    parts = core.split(".")
    wild = next((index for index, part in enumerate(parts) if part in _WILD), None)
    given = min(len(parts), 3 if wild is None else wild)
    if (dash and given < len(_EMPTY)) or (wild == 0 and (len(parts) > 1 or operator in _BOUNDS)):
        message = f"`{operator}{text}` is a constraint that means nothing: write all three numbers"
        raise ValueError(message)
    numbers = tuple(int(part) for part in parts[:given]) + (0,) * (3 - given)
    low = ChartVersion((numbers[0], numbers[1], numbers[2]), not dash, _split_words(pre))
    return low, _compare(operator, low, given, is_wild=wild is not None)


def _compare(operator: str, low: ChartVersion, given: int, *, is_wild: bool) -> Accepts:
    """Return the comparison of an operator; `given` is how many numbers were written."""
    above = _raise_above(low, given)
    match operator:
        case ">":
            return (lambda v: v > low) if given == len(low.numbers) else (lambda v: v >= above)
        case "<":
            return lambda v: v < low
        case ">=" | "=>":
            return lambda v: v >= low
        case "<=" | "=<":
            return (lambda v: v <= low) if given == len(low.numbers) else (lambda v: v < above)
        case "!=":
            if given < len(low.numbers):
                return lambda v: not low <= v < above
            return lambda v: v != low
        case "^":
            caret = _raise_above(low, _find_caret(low, given))
            return lambda v: low <= v < caret
        case "~" | "~>":
            tilde = _raise_above(low, min(given, 2))
            return lambda v: low <= v < tilde
        case _:
            if given < len(low.numbers) or is_wild:
                return lambda v: low <= v < above
            return lambda v: v == low


def _find_caret(low: ChartVersion, given: int) -> int:
    """Return how many numbers `^` keeps: up to the first that is not zero."""
    for index, number in enumerate(low.numbers[:given]):
        if number:
            return index + 1
    return given


def _raise_above(low: ChartVersion, kept: int) -> ChartVersion:
    """Return the smallest version above all that share the first `kept` numbers with `low`."""
    if kept == 0:
        return ChartVersion((10**19, 0, 0))
    numbers = [*low.numbers[: kept - 1], low.numbers[kept - 1] + 1, 0, 0][:3]
    return ChartVersion((numbers[0], numbers[1], numbers[2]))
