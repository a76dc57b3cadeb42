"""Semantic versions and constraints, with the rules of sprig's library."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from exclave.template.problems import Fault

_LABEL = r"[0-9A-Za-z\-]+(?:\.[0-9A-Za-z\-]+)*"
_VERSION = re.compile(rf"v?([0-9]+)(\.[0-9]+)?(\.[0-9]+)?(?:-({_LABEL}))?(?:\+({_LABEL}))?\Z")
_WILD = r"[0-9]+|x|X|\*"
_PART = (
    r"(=<|=>|<=|>=|!=|~>|=|<|>|~|\^|)\s*"
    rf"(v?({_WILD})(\.(?:{_WILD}))?(\.(?:{_WILD}))?(?:-({_LABEL}))?(?:\+{_LABEL})?)"
)
_CONSTRAINT = re.compile(_PART)
_SEPARATOR = re.compile(r"\s*,\s*|\s+|\Z")
_HYPHEN = re.compile(
    rf"\s*(v?(?:{_WILD})(?:\.(?:{_WILD}))*(?:-{_LABEL})?)\s+-\s+"
    rf"(v?(?:{_WILD})(?:\.(?:{_WILD}))*(?:-{_LABEL})?)\s*"
)
_LARGEST = 1 << 64
_LONGEST = 256


@dataclass(frozen=True, slots=True)
class Parsed:
    """The parts of a version."""

    major: int
    minor: int
    patch: int
    label: str
    metadata: str

    def order(self) -> tuple[object, ...]:
        """Return the sort key; a release comes after its pre-releases."""
        return (self.major, self.minor, self.patch, _order_label(self.label))

    def text(self) -> str:
        """Return the version in full."""
        label = f"-{self.label}" if self.label else ""
        metadata = f"+{self.metadata}" if self.metadata else ""
        return f"{self.major}.{self.minor}.{self.patch}{label}{metadata}"


def _order_label(label: str) -> tuple[object, ...]:
    if not label:
        return (1,)
    parts: list[tuple[int, int, str]] = [
        (0, int(part), "") if part.isdigit() else (1, 0, part) for part in label.split(".")
    ]
    return (0, tuple(parts))


def parse_version(text: str) -> Parsed:
    """Return a parsed version; minor and patch are optional."""
    match = _VERSION.match(text) if len(text) <= _LONGEST else None
    if match is None:
        raise Fault(f"{text!r} is not a semantic version")
    numbers = [int((match[group] or "0").lstrip(".")) for group in (1, 2, 3)]
    label = match[4] or ""
    leading = any(part.isdigit() and len(part) > 1 and part[0] == "0" for part in label.split("."))
    if leading or max(numbers) >= _LARGEST:
        raise Fault(f"{text!r} is not a semantic version")
    major, minor, patch = numbers
    return Parsed(major, minor, patch, label, match[5] or "")


@dataclass(frozen=True, slots=True)
class Constraint:
    """One comparison; parts that are missing or `x` are wildcards."""

    operator: str
    version: Parsed
    any_major: bool = False
    any_minor: bool = False
    any_patch: bool = False

    @property
    def is_open(self) -> bool:
        """Return whether any part is a wildcard."""
        return self.any_major or self.any_minor or self.any_patch


def check_constraint(text: str, version: str) -> bool:
    """Return whether a version satisfies a constraint."""
    groups = [_parse_group(part) for part in text.split("||")]
    parsed = parse_version(version)
    return any(all(_satisfies(constraint, parsed) for constraint in group) for group in groups)


def _parse_group(text: str) -> list[Constraint]:
    if len(text) > _LONGEST:
        raise Fault("this version constraint is too long")
    text = _HYPHEN.sub(lambda match: f" >={match[1]} <={match[2]} ", text).strip()
    constraints: list[Constraint] = []
    at = 0
    while at < len(text) or not constraints:
        match = _CONSTRAINT.match(text, at)
        separator = None if match is None else _SEPARATOR.match(text, match.end())
        if match is None or separator is None:
            raise Fault(f"{text!r} is not a version constraint", hint='Write it like ">=1.2 <2".')
        constraints.append(_make_constraint(match))
        at = separator.end()
    return constraints


def _make_constraint(match: re.Match[str]) -> Constraint:
    major, minor, patch = match[3], (match[4] or ".x")[1:], (match[5] or ".x")[1:]
    label = f"-{match[6]}" if match[6] else ""
    operator = match[1]
    if major in "xX*":
        return Constraint(operator, parse_version(f"0.0.0{label}"), any_major=True)
    if minor in "xX*":
        return Constraint(operator, parse_version(f"{major}.0.0{label}"), any_minor=True)
    if patch in "xX*":
        return Constraint(operator, parse_version(f"{major}.{minor}.0{label}"), any_patch=True)
    return Constraint(operator, parse_version(f"{major}.{minor}.{patch}{label}"))


def _satisfies(constraint: Constraint, version: Parsed) -> bool:
    if version.label and not constraint.version.label:
        return False
    return _CHECKS[constraint.operator](constraint, version)


def _equal(constraint: Constraint, version: Parsed) -> bool:
    if constraint.is_open:
        return _tilde(constraint, version)
    return version.order() == constraint.version.order()


def _not_equal(constraint: Constraint, version: Parsed) -> bool:
    return not _equal(constraint, version)


def _greater(constraint: Constraint, version: Parsed) -> bool:
    bound = constraint.version
    if not constraint.is_open or constraint.any_major:
        return version.order() > bound.order()
    if version.major != bound.major or constraint.any_minor:
        return version.major > bound.major
    return version.minor > bound.minor


def _less(constraint: Constraint, version: Parsed) -> bool:
    return version.order() < constraint.version.order()


def _at_least(constraint: Constraint, version: Parsed) -> bool:
    return version.order() >= constraint.version.order()


def _at_most(constraint: Constraint, version: Parsed) -> bool:
    bound = constraint.version
    if not constraint.is_open:
        return version.order() <= bound.order()
    if version.major != bound.major:
        return version.major < bound.major
    return constraint.any_minor or version.minor <= bound.minor


def _tilde(constraint: Constraint, version: Parsed) -> bool:
    bound = constraint.version
    if version.order() < bound.order():
        return False
    zero = (bound.major, bound.minor, bound.patch) == (0, 0, 0)
    if zero and not constraint.any_minor and not constraint.any_patch:
        return True
    return version.major == bound.major and (constraint.any_minor or version.minor == bound.minor)


def _caret(constraint: Constraint, version: Parsed) -> bool:
    bound = constraint.version
    if version.order() < bound.order():
        return False
    if bound.major > 0 or constraint.any_minor or version.major > 0:
        return version.major == bound.major
    if bound.minor > 0 or constraint.any_patch or version.minor > 0:
        return version.minor == bound.minor
    return version.patch == bound.patch


_CHECKS: dict[str, Callable[[Constraint, Parsed], bool]] = {
    "": _equal, "=": _equal, "!=": _not_equal, ">": _greater, "<": _less, ">=": _at_least,
    "=>": _at_least, "<=": _at_most, "=<": _at_most, "~": _tilde, "~>": _tilde, "^": _caret,
}  # fmt: skip
