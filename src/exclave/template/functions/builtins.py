"""The builtin functions of Go's text/template."""

from typing import NoReturn

from exclave.template import compare, formatting, printing
from exclave.template.functions.signature import Env, Param, Registry
from exclave.template.problems import Fault
from exclave.template.text import is_raw_byte, to_bytes
from exclave.template.urls import escape_query
from exclave.template.values import (
    INTEGERS,
    Byte,
    StringMap,
    Value,
    is_true,
    kind_of,
    length,
    type_of,
)

BUILTINS = Registry()
ANY, TEXT = Param.ANY, Param.TEXT


@BUILTINS.add("and", "or", takes=(ANY,), rest=ANY)
def choose(*_: Value) -> NoReturn:
    """Return the first argument that decides `and` (false) or `or` (true), else the last one."""
    raise AssertionError  # the evaluator does it, because it stops early


@BUILTINS.add("not", takes=(ANY,))
def negate(value: Value) -> bool:
    """Return whether a value is false, empty or nil."""
    return not is_true(value)


@BUILTINS.add("eq", takes=(ANY,), rest=ANY)
def eq(first: Value, *others: Value) -> bool:
    """Return whether the first value equals any of the others."""
    if not others:
        raise Fault("eq needs something to compare with")
    return any(compare.equal(first, other) for other in others)


@BUILTINS.add("ne", takes=(ANY, ANY))
def ne(left: Value, right: Value) -> bool:
    """Return whether two values differ."""
    return not compare.equal(left, right)


@BUILTINS.add("lt", takes=(ANY, ANY))
def lt(left: Value, right: Value) -> bool:
    """Return whether the first value is less."""
    return compare.less(left, right)


@BUILTINS.add("le", takes=(ANY, ANY))
def le(left: Value, right: Value) -> bool:
    """Return whether the first value is less or equal."""
    return compare.less(left, right) or compare.equal(left, right)


@BUILTINS.add("gt", takes=(ANY, ANY))
def gt(left: Value, right: Value) -> bool:
    """Return whether the first value is greater."""
    return not le(left, right)


@BUILTINS.add("ge", takes=(ANY, ANY))
def ge(left: Value, right: Value) -> bool:
    """Return whether the first value is greater or equal."""
    return not compare.less(left, right)


@BUILTINS.add("len", takes=(ANY,))
def count(value: Value) -> int:
    """Return the number of elements, or of bytes of a string."""
    return length(value)


@BUILTINS.add("index", takes=(ANY,), rest=ANY)
def index(value: Value, *keys: Value) -> Value:
    """Return an element of a list, map or string, one level deeper for each key."""
    if value is None:
        raise Fault("index of nil")
    for key in keys:
        value = _index_once(value, key)
    return value


def _index_once(value: Value, key: Value) -> Value:
    match value:
        case None:
            raise Fault(
                f"index {_show(key)} of null", hint='`dig "key" DEFAULT map` bears missing keys.'
            )
        case dict():
            if not isinstance(key, str):
                raise Fault(f"a map is indexed with a string, not {type_of(key)}")
            return value.get(key, "" if isinstance(value, StringMap) else None)
        case list():
            return value[_position(key, len(value))]
        case str():
            data = to_bytes(value)
            return Byte(data[_position(key, len(data))])
        case _:
            raise Fault(f"a {type_of(value)} has no elements")


def _position(key: Value, size: int) -> int:
    if kind_of(key) not in INTEGERS or not isinstance(key, int):
        raise Fault(f"a list is indexed with an integer, not {type_of(key)}")
    if not 0 <= key < size:
        raise Fault(f"index {int(key)} is out of range: there are {size} elements")
    return key


def _show(key: Value) -> str:
    return f'"{key}"' if isinstance(key, str) else str(key)


@BUILTINS.add_with_env("print", rest=ANY)
def print_values(env: Env, *values: Value) -> str:
    """Return the values as `Sprint` prints them: a space between two that are not strings."""
    return printing.sprint(list(values), env.budget)


@BUILTINS.add_with_env("println", rest=ANY)
def print_line(env: Env, *values: Value) -> str:
    """Return the values separated by spaces, with a newline at the end."""
    return printing.sprintln(list(values), env.budget)


@BUILTINS.add_with_env("printf", takes=(TEXT,), rest=ANY)
def print_formatted(env: Env, pattern: str, *values: Value) -> str:
    """Return the values formatted with Go's verbs."""
    return formatting.sprintf(pattern, list(values), env.budget)


_HTML = str.maketrans(
    {"\0": "\ufffd", '"': "&#34;", "'": "&#39;", "&": "&amp;", "<": "&lt;", ">": "&gt;"}
)
_JS = {
    "\\": "\\\\", "'": "\\'", '"': '\\"', "<": "\\u003C", ">": "\\u003E", "&": "\\u0026",
    "=": "\\u003D",
}  # fmt: skip


@BUILTINS.add_with_env("html", rest=ANY)
def escape_html(env: Env, *values: Value) -> str:
    """Return the values escaped for HTML."""
    return _join(env, values).translate(_HTML)


@BUILTINS.add_with_env("js", rest=ANY)
def escape_js(env: Env, *values: Value) -> str:
    """Return the values escaped for a JavaScript string."""
    return "".join(_escape_js_char(char) for char in _join(env, values))


def _escape_js_char(char: str) -> str:
    if char in _JS:
        return _JS[char]
    if char >= " " and (char.isascii() or char.isprintable() or is_raw_byte(char)):
        return char
    return f"\\u{ord(char):04X}"


@BUILTINS.add_with_env("urlquery", rest=ANY)
def escape_url_query(env: Env, *values: Value) -> str:
    """Return the values escaped for a URL query."""
    return escape_query(_join(env, values))


def _join(env: Env, values: tuple[Value, ...]) -> str:
    return printing.sprint(
        ["<no value>" if value is None else value for value in values], env.budget
    )


@BUILTINS.add("call", takes=(ANY,), rest=ANY)
def call(*_: Value) -> NoReturn:
    """Raise: values are data, so there is no function to call."""
    raise Fault("call needs a function, and values are data only")
