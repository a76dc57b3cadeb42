"""sprig: strings. Positions and lengths count bytes, as in Go."""

from exclave.template import printing
from exclave.template.functions.convert import to_string, to_strings
from exclave.template.functions.signature import Env, Param, Registry
from exclave.template.problems import Fault
from exclave.template.quoting import quote
from exclave.template.text import size, to_bytes, to_text
from exclave.template.values import StringMap, Strings, Value

STRINGS = Registry()
ANY, INT, TEXT = Param.ANY, Param.INT, Param.TEXT

SPACES = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)


@STRINGS.add("hello")
def hello() -> str:
    """Return a greeting (sprig's test function)."""
    return "Hello!"


@STRINGS.add("trim", takes=(TEXT,))
def trim(text: str) -> str:
    """Return the text without white space at both ends."""
    return text.strip(SPACES)


@STRINGS.add("trimAll", "trimall", takes=(TEXT, TEXT))
def trim_all(chars: str, text: str) -> str:
    """Return the text without the given characters at both ends."""
    return text.strip(chars) if chars else text


@STRINGS.add("trimPrefix", takes=(TEXT, TEXT))
def trim_prefix(prefix: str, text: str) -> str:
    """Return the text without a prefix."""
    return to_text(to_bytes(text).removeprefix(to_bytes(prefix)))


@STRINGS.add("trimSuffix", takes=(TEXT, TEXT))
def trim_suffix(suffix: str, text: str) -> str:
    """Return the text without a suffix."""
    return to_text(to_bytes(text).removesuffix(to_bytes(suffix)))


@STRINGS.add("contains", takes=(TEXT, TEXT))
def contains(part: str, text: str) -> bool:
    """Return whether a text contains another."""
    return to_bytes(part) in to_bytes(text)


@STRINGS.add("hasPrefix", takes=(TEXT, TEXT))
def has_prefix(prefix: str, text: str) -> bool:
    """Return whether a text starts with another."""
    return to_bytes(text).startswith(to_bytes(prefix))


@STRINGS.add("hasSuffix", takes=(TEXT, TEXT))
def has_suffix(suffix: str, text: str) -> bool:
    """Return whether a text ends with another."""
    return to_bytes(text).endswith(to_bytes(suffix))


@STRINGS.add_with_env("repeat", takes=(INT, TEXT))
def repeat(env: Env, times: int, text: str) -> str:
    """Return the text repeated a number of times."""
    if times < 0:
        raise Fault("repeat needs a count that is not negative")
    env.budget.check_text(times * size(text))
    return text * times


@STRINGS.add("substr", takes=(INT, INT, TEXT))
def substring(start: int, end: int, text: str) -> str:
    """Return the part of a text from start to end."""
    data = to_bytes(text)
    if start < 0:
        return _cut(data, 0, end)
    if end < 0 or end > len(data):
        return _cut(data, start, len(data))
    return _cut(data, start, end)


def _cut(data: bytes, start: int, end: int) -> str:
    if not 0 <= start <= end <= len(data):
        raise Fault(f"the range {start}:{end} is outside of a text of {len(data)} bytes")
    return to_text(data[start:end])


@STRINGS.add("trunc", takes=(INT, TEXT))
def truncate(length: int, text: str) -> str:
    """Return the first bytes, or the last ones for a negative length."""
    data = to_bytes(text)
    if length < 0:
        return to_text(data[length:]) if len(data) + length > 0 else text
    return to_text(data[:length])


@STRINGS.add("abbrev", takes=(INT, TEXT))
def abbreviate(width: int, text: str) -> str:
    """Return the text shortened with an ellipsis."""
    return text if width < _SHORTEST else to_text(_abbreviate(to_bytes(text), 0, width))


@STRINGS.add("abbrevboth", takes=(INT, INT, TEXT))
def abbreviate_both(left: int, right: int, text: str) -> str:
    """Return the text shortened with ellipses on both sides."""
    if right < _SHORTEST or (left > 0 and right < _SHORTEST_BOTH):
        return text
    return to_text(_abbreviate(to_bytes(text), left, right))


_SHORTEST = 4
_SHORTEST_BOTH = 7
_DOTS = b"..."


def _abbreviate(data: bytes, offset: int, width: int) -> bytes:
    if len(data) <= width:
        return data
    kept = width - len(_DOTS)
    offset = min(offset, len(data))
    if len(data) - offset < kept:
        offset = len(data) - kept
    if offset <= len(_DOTS) + 1:
        return data[:kept] + _DOTS
    if width < _SHORTEST_BOTH:
        return b""
    if offset + kept < len(data):
        return _DOTS + _abbreviate(data[offset:], 0, kept)
    return _DOTS + data[len(data) - kept :]


@STRINGS.add_with_env("quote", rest=ANY)
def quote_all(env: Env, *values: Value) -> str:
    """Return the values in double quotes, separated by spaces."""
    shown = [quote(to_string(value, env.budget)) for value in values if value is not None]
    return " ".join(shown)


@STRINGS.add_with_env("squote", rest=ANY)
def quote_single(env: Env, *values: Value) -> str:
    """Return the values in single quotes, separated by spaces."""
    return " ".join(
        f"'{printing.show(value, env.budget)}'" for value in values if value is not None
    )


@STRINGS.add_with_env("cat", rest=ANY)
def concatenate(env: Env, *values: Value) -> str:
    """Return the values separated by spaces."""
    return " ".join(printing.show(value, env.budget) for value in values if value is not None)


@STRINGS.add_with_env("indent", takes=(INT, TEXT))
def indent(env: Env, spaces: int, text: str) -> str:
    """Return the text with every line indented."""
    if spaces < 0:
        raise Fault("indent needs a count that is not negative")
    env.budget.check_text(size(text) + spaces * (text.count("\n") + 1))
    pad = " " * spaces
    return pad + text.replace("\n", "\n" + pad)


@STRINGS.add_with_env("nindent", takes=(INT, TEXT))
def indent_new_line(env: Env, spaces: int, text: str) -> str:
    """Return a newline and the indented text."""
    return "\n" + indent(env, spaces, text)


@STRINGS.add_with_env("replace", takes=(TEXT, TEXT, TEXT))
def replace(env: Env, old: str, new: str, text: str) -> str:
    """Return the text with every occurrence replaced."""
    if not old:  # between any two characters, not bytes
        env.budget.check_text(size(text) + (len(text) + 1) * size(new))
        return text.replace(old, new)
    data, part = to_bytes(text), to_bytes(old)
    env.budget.check_text(len(data) + data.count(part) * size(new))
    return to_text(data.replace(part, to_bytes(new)))


@STRINGS.add("plural", takes=(TEXT, TEXT, INT))
def plural(singular: str, many: str, count: int) -> str:
    """Return the singular or the plural, depending on a count."""
    return singular if count == 1 else many


@STRINGS.add_with_env("toString", takes=(ANY,))
def make_string(env: Env, value: Value) -> str:
    """Return the value as a string."""
    return to_string(value, env.budget)


@STRINGS.add_with_env("toStrings", takes=(ANY,))
def make_strings(env: Env, value: Value) -> Strings:
    """Return the elements of a list as strings."""
    return to_strings(value, env.budget)


@STRINGS.add_with_env("join", takes=(TEXT, ANY))
def join(env: Env, separator: str, value: Value) -> str:
    """Return the elements of a list joined with a separator."""
    parts = [str(part) for part in to_strings(value, env.budget)]
    env.budget.check_text(sum(map(size, parts)) + size(separator) * len(parts))
    return separator.join(parts)


@STRINGS.add_with_env("splitList", takes=(TEXT, TEXT))
def split_list(env: Env, separator: str, text: str) -> Strings:
    """Return the parts of a text as a list."""
    env.budget.check_items(to_bytes(text).count(to_bytes(separator)) + 1)
    return Strings(_split(separator, text, -1))


@STRINGS.add_with_env("split", takes=(TEXT, TEXT))
def split(env: Env, separator: str, text: str) -> StringMap:
    """Return the parts of a text as a map with the keys _0, _1 and so on."""
    return split_n(env, separator, -1, text)


@STRINGS.add_with_env("splitn", takes=(TEXT, INT, TEXT))
def split_n(env: Env, separator: str, most: int, text: str) -> StringMap:
    """Return at most a number of parts of a text as a map."""
    env.budget.check_items(to_bytes(text).count(to_bytes(separator)) + 1)
    parts = _split(separator, text, most)
    return StringMap({f"_{number}": part for number, part in enumerate(parts)})


def _split(separator: str, text: str, most: int) -> list[str]:
    if most == 0:
        return []
    if separator:
        parts = to_bytes(text).split(to_bytes(separator), most - 1 if most > 0 else -1)
        return [to_text(part) for part in parts]
    chars = list(text)
    if 0 < most < len(chars):
        return [*chars[: most - 1], "".join(chars[most - 1 :])]
    return chars


@STRINGS.add("wrap", takes=(INT, TEXT))
def wrap(width: int, text: str) -> str:
    """Return the text wrapped at spaces; long words stay whole."""
    return to_text(_wrap(to_bytes(text), max(1, width), b"\n", cut_words=False))


@STRINGS.add_with_env("wrapWith", takes=(INT, TEXT, TEXT))
def wrap_with(env: Env, width: int, separator: str, text: str) -> str:
    """Return the text wrapped with a separator; long words are cut."""
    mark = to_bytes(separator) or b"\n"
    data = to_bytes(text)
    env.budget.check_text(len(data) + len(data) // max(1, width) * len(mark))
    return to_text(_wrap(data, max(1, width), mark, cut_words=True))


def _wrap(data: bytes, width: int, mark: bytes, *, cut_words: bool) -> bytes:
    lines: list[bytes] = []
    at = 0
    while len(data) - at > width:
        if data[at] == ord(" "):
            at += 1
            continue
        blank = data.rfind(b" ", at, at + width + 1)
        if blank < 0 and cut_words:
            lines.append(data[at : at + width])
            at += width
            continue
        if blank < 0:
            blank = data.find(b" ", at + width)
        if blank < 0:
            return mark.join([*lines, data[at:]])
        lines.append(data[at:blank])
        at = blank + 1
    return mark.join([*lines, data[at:]])
