"""Function signatures, and the registry that functions are added to."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import ParamSpec, TypeVar

from exclave.template.limits import Budget
from exclave.template.problems import Fault
from exclave.template.values import Byte, Int64, StringMap, Time, Uint64, Value, type_of

P = ParamSpec("P")
R = TypeVar("R")


class Param(StrEnum):
    """The Go type of a parameter; values of another type are refused, not converted."""

    ANY = "any value"
    TEXT = "a string"
    INT = "an int"
    FLOAT = "a float64"
    BOOL = "a bool"
    MAP = "a map"
    TIME = "a time"


@dataclass(frozen=True, slots=True)
class Env:
    """What a function can access besides its arguments."""

    budget: Budget
    now: Time | None


@dataclass(frozen=True, slots=True)
class Function:
    """A callable with its Go signature."""

    name: str
    params: tuple[Param, ...]
    rest: Param | None
    call: Callable[..., Value]
    with_env: bool

    def check_count(self, count: int) -> None:
        """Raise if the number of arguments is wrong."""
        wanted = len(self.params)
        if self.rest is not None and count < wanted:
            raise Fault(f"{self.name} needs at least {wanted} arguments, not {count}")
        if self.rest is None and count != wanted:
            raise Fault(f"{self.name} needs {wanted} arguments, not {count}")

    def param(self, number: int) -> Param:
        """Return the type of the parameter at a position."""
        if number < len(self.params):
            return self.params[number]
        return self.rest or Param.ANY


_CLASSES: dict[Param, tuple[type, ...]] = {
    Param.TEXT: (str,),
    Param.INT: (int,),
    Param.FLOAT: (float,),
    Param.BOOL: (bool,),
    Param.MAP: (dict,),
    Param.TIME: (Time,),
}
_OTHERS = (bool, Int64, Byte, Uint64, StringMap)
"""Subclasses that are another type in Go."""

_HINTS = {
    Param.TEXT: "Convert it with `toString`.",
    Param.INT: "Convert it with `int`.",
    Param.FLOAT: "Convert it with `float64`.",
}


def check_type(value: Value, param: Param, name: str) -> Value:
    """Return the value if its Go type is assignable to the parameter, else raise."""
    if param is Param.ANY:
        return value
    if value is None and param is Param.MAP and name != "set":
        return {}
    other = isinstance(value, _OTHERS) and param is not Param.BOOL
    if isinstance(value, _CLASSES[param]) and not other:
        return value
    actual = "nothing" if value is None else type_of(value)
    raise Fault(f"{name} needs {param.value} here, not {actual}", hint=_HINTS.get(param, ""))


class Registry:
    """The functions of one module, by name."""

    def __init__(self) -> None:
        self._functions: dict[str, Function] = {}

    def __iter__(self) -> Iterator[Function]:
        return iter(self._functions.values())

    def add(
        self, *names: str, takes: tuple[Param, ...] = (), rest: Param | None = None
    ) -> Callable[[Callable[P, R]], Callable[P, R]]:
        """Register a pure function under one or more names."""

        def register(call: Callable[P, R]) -> Callable[P, R]:
            for name in names:
                self._functions[name] = Function(name, takes, rest, call, with_env=False)
            return call

        return register

    def add_with_env(
        self, *names: str, takes: tuple[Param, ...] = (), rest: Param | None = None
    ) -> Callable[[Callable[P, R]], Callable[P, R]]:
        """Register a function that takes the `Env` before its arguments."""

        def register(call: Callable[P, R]) -> Callable[P, R]:
            for name in names:
                self._functions[name] = Function(name, takes, rest, call, with_env=True)
            return call

        return register
