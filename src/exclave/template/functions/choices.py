"""sprig: defaults, conditionals, and type inspection."""

from typing import NoReturn

from exclave.template.compare import deep_equal
from exclave.template.functions.signature import Env, Param, Registry
from exclave.template.problems import Fault
from exclave.template.values import Value, is_empty, kind_of, type_of

CHOICES = Registry()
ANY, BOOL, TEXT = Param.ANY, Param.BOOL, Param.TEXT


@CHOICES.add("default", takes=(ANY,), rest=ANY)
def default(fallback: Value, *given: Value) -> Value:
    """Return the value, or the default if the value is empty."""
    return fallback if not given or is_empty(given[0]) else given[0]


@CHOICES.add("empty", takes=(ANY,))
def empty(value: Value) -> bool:
    """Return whether a value is empty: nil, zero, false, or without elements."""
    return is_empty(value)


@CHOICES.add("coalesce", rest=ANY)
def coalesce(*values: Value) -> Value:
    """Return the first value that is not empty."""
    return next((value for value in values if not is_empty(value)), None)


@CHOICES.add("all", rest=ANY)
def all_set(*values: Value) -> bool:
    """Return whether no value is empty."""
    return not any(is_empty(value) for value in values)


@CHOICES.add("any", rest=ANY)
def any_set(*values: Value) -> bool:
    """Return whether any value is not empty."""
    return not all(is_empty(value) for value in values)


@CHOICES.add("ternary", takes=(ANY, ANY, BOOL))
def ternary(yes: Value, no: Value, condition: bool) -> Value:  # noqa: FBT001 - called by position
    """Return the first value if the last is true, else the second."""
    return yes if condition else no


@CHOICES.add("fail", takes=(TEXT,))
def fail(message: str) -> NoReturn:
    """Raise a problem with the author's message."""
    raise Fault(message)


@CHOICES.add("kindOf", takes=(ANY,))
def kind_name(value: Value) -> str:
    """Return the kind of a value."""
    return kind_of(value).value


@CHOICES.add("kindIs", takes=(TEXT, ANY))
def kind_is(name: str, value: Value) -> bool:
    """Return whether a value is of this kind."""
    return kind_of(value).value == name


@CHOICES.add("typeOf", takes=(ANY,))
def type_name(value: Value) -> str:
    """Return the Go type of a value."""
    return type_of(value)


@CHOICES.add("typeIs", takes=(TEXT, ANY))
def type_is(name: str, value: Value) -> bool:
    """Return whether a value is of this Go type."""
    return type_of(value) == name


@CHOICES.add("typeIsLike", takes=(TEXT, ANY))
def type_is_like(name: str, value: Value) -> bool:
    """Return whether a value is of this Go type or a pointer to it."""
    return type_of(value) in (name, f"*{name}")


@CHOICES.add_with_env("deepEqual", takes=(ANY, ANY))
def is_deeply_equal(env: Env, left: Value, right: Value) -> bool:
    """Return whether two values are deeply equal."""
    return deep_equal(left, right, env.budget)
