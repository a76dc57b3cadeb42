"""sprig: regular expressions with Go's syntax (RE2)."""

import re
from collections.abc import Callable

from exclave.template.functions.signature import Env, Param, Registry
from exclave.template.problems import Fault
from exclave.template.regex.machine import Pattern, Slots, compile_pattern
from exclave.template.regex.tree import BadPattern
from exclave.template.text import size
from exclave.template.values import Strings

PATTERNS = Registry()
TEXT, INT = Param.TEXT, Param.INT

_META = re.compile(r"[\\.+*?()|\[\]{}^$]")
_REFERENCE = re.compile(r"\$(?:\$|\{(\w+)\}|(\w+))")


def _compile(env: Env, pattern: str) -> Pattern:
    try:
        return compile_pattern(pattern, env.budget)
    except BadPattern as bad:
        raise Fault(f"the regular expression {pattern!r} is wrong: {bad}") from None


@PATTERNS.add_with_env("regexMatch", takes=(TEXT, TEXT))
def regex_match(env: Env, pattern: str, text: str) -> bool:
    """Return whether a text has a match; an invalid pattern matches nothing."""
    try:
        return compile_pattern(pattern, env.budget).search(text, 0, env.budget) is not None
    except BadPattern:
        return False


@PATTERNS.add_with_env("mustRegexMatch", takes=(TEXT, TEXT))
def must_regex_match(env: Env, pattern: str, text: str) -> bool:
    """Return whether a text has a match."""
    return _compile(env, pattern).search(text, 0, env.budget) is not None


@PATTERNS.add_with_env("regexFind", "mustRegexFind", takes=(TEXT, TEXT))
def regex_find(env: Env, pattern: str, text: str) -> str:
    """Return the first match."""
    match = _compile(env, pattern).search(text, 0, env.budget)
    return "" if match is None else text[match[0] : match[1]]


@PATTERNS.add_with_env("regexFindAll", "mustRegexFindAll", takes=(TEXT, TEXT, INT))
def regex_find_all(env: Env, pattern: str, text: str, most: int) -> Strings:
    """Return all matches, or at most a number of them."""
    matches = _compile(env, pattern).find_all(text, most, env.budget)
    return Strings([text[slots[0] : slots[1]] for slots in matches])


@PATTERNS.add_with_env("regexReplaceAll", "mustRegexReplaceAll", takes=(TEXT, TEXT, TEXT))
def regex_replace_all(env: Env, pattern: str, text: str, new: str) -> str:
    """Return the text with all matches replaced; `$1` and `${name}` stand for groups."""
    compiled = _compile(env, pattern)
    return _replace(env, compiled, text, lambda slots: _expand(compiled, new, text, slots))


@PATTERNS.add_with_env(
    "regexReplaceAllLiteral", "mustRegexReplaceAllLiteral", takes=(TEXT, TEXT, TEXT)
)
def regex_replace_all_literal(env: Env, pattern: str, text: str, new: str) -> str:
    """Return the text with all matches replaced literally."""
    return _replace(env, _compile(env, pattern), text, lambda _: new)


@PATTERNS.add_with_env("regexSplit", "mustRegexSplit", takes=(TEXT, TEXT, INT))
def regex_split(env: Env, pattern: str, text: str, most: int) -> Strings:
    """Return the text split at matches, into at most a number of parts."""
    compiled = _compile(env, pattern)
    if most == 0:
        return Strings()
    if pattern and not text:
        return Strings([""])
    parts: list[str] = []
    start = end = 0
    for slots in compiled.find_all(text, most, env.budget):
        if most > 0 and len(parts) == most - 1:
            break
        end = slots[0]
        if slots[1] != 0:
            parts.append(text[start:end])
        start = slots[1]
    if end != len(text):
        parts.append(text[start:])
    return Strings(parts)


@PATTERNS.add("regexQuoteMeta", takes=(TEXT,))
def regex_quote_meta(text: str) -> str:
    """Return a pattern that matches exactly this text."""
    return _META.sub(lambda match: "\\" + match[0], text)


def _replace(env: Env, pattern: Pattern, text: str, make: Callable[[Slots], str]) -> str:
    """Replace non-overlapping matches; an empty match right after another one does not count."""
    pieces: list[str] = []
    done = at = length = 0
    while at <= len(text):
        slots = pattern.search(text, at, env.budget)
        if slots is None:
            break
        pieces.append(text[done : slots[0]])
        if slots[1] > done or slots[0] == 0:
            pieces.append(make(slots))
            length += size(pieces[-1])
            env.budget.check_text(length)
        done = slots[1]
        at = max(at + 1, done)
    return "".join([*pieces, text[done:]])


def _expand(pattern: Pattern, new: str, text: str, slots: Slots) -> str:
    def part(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        if name is None:
            return "$"
        short = name.isascii() and name.isdigit() and len(name) < 6  # noqa: PLR2004 - no group beyond
        number = int(name) if short else pattern.names.get(name, -1)
        if not 0 <= number <= pattern.groups or slots[2 * number] < 0:
            return ""
        return text[slots[2 * number] : slots[2 * number + 1]]

    return _REFERENCE.sub(part, new)
