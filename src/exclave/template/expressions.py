"""Evaluation of pipelines, commands and operands."""

import difflib
import itertools
from collections.abc import Mapping, Sequence
from typing import Final, assert_never

from exclave.template.functions.signature import Env, Function, Param, check_type
from exclave.template.limits import weigh
from exclave.template.nodes import (
    Bool,
    Chain,
    Command,
    Dot,
    Field,
    Nil,
    Number,
    Operand,
    Pipe,
    String,
    Variable,
)
from exclave.template.nodes import Function as FunctionName
from exclave.template.problems import Fault
from exclave.template.text import size
from exclave.template.values import Value, Version, is_true, type_of


class _Missing:
    """Marks that no value was piped into a command."""


_MISSING: Final = _Missing()
_VARIABLES_PER_STEP = 32
_NAMES_PER_STEP = 4


class Expressions:
    """Evaluates expressions; holds the variables and the node that errors point at."""

    def __init__(self, functions: Mapping[str, Function], env: Env) -> None:
        self._functions = functions
        self._env = env
        self.variables: list[tuple[str, Value]] = []
        self.at = 0

    def assign(self, name: str, value: Value) -> None:
        """Assign to the innermost variable of that name."""
        self.variables[self._find_variable(name)] = (name, value)

    def pipe(self, pipe: Pipe, dot: Value, path: str) -> Value:
        """Return the value of a pipeline and set its variables (`range` sets them again itself)."""
        self._env.budget.enter()
        value: Value | _Missing = _MISSING
        for command in pipe.commands:
            value = self._command(command, dot, path, value)
        self._env.budget.depth -= 1
        for name in pipe.variables:
            if pipe.assigns:
                self.assign(name, value)
            else:
                self.variables.append((name, value))
        return value

    def _command(self, command: Command, dot: Value, path: str, final: Value | _Missing) -> Value:
        first = command.args[0]
        self.at = first.at
        if isinstance(first, FunctionName):
            return self._call(first, command.args[1:], dot, path, final)
        if len(command.args) > 1 or final is not _MISSING:
            raise Fault(
                "only a function can take arguments",
                hint="Put the function first, or a `|` in front of it.",
            )
        if isinstance(first, Nil):
            raise Fault("nil is not a value that can be printed")
        return self._operand(first, dot, path)

    def _operand(self, node: Operand, dot: Value, path: str) -> Value:  # noqa: C901 - one case per node
        self._env.budget.spend()
        self.at = node.at
        match node:
            case Dot():
                return dot
            case Nil():
                return None
            case Bool() | String():
                return node.value
            case Number():
                if node.ideal is None:
                    raise Fault(f"{node.text} overflows int")
                return node.ideal
            case Field():
                return self._fields(dot, node.names, path, node.at)
            case Variable():
                return self._variable(node)
            case FunctionName():
                return self._call(node, (), dot, path, _MISSING)
            case Chain():
                base = self._operand(node.base, dot, path)
                return self._fields(base, node.names, "(…)", node.at)
            case Pipe():
                return self.pipe(node, dot, path)
            case _:
                assert_never(node)

    def _variable(self, node: Variable) -> Value:
        value = self.variables[self._find_variable(node.name)][1]
        start = "" if node.name == "$" else node.name
        return self._fields(value, node.names, start, node.at)

    def _find_variable(self, name: str) -> int:
        """Return the innermost variable of that name."""
        for number in range(len(self.variables) - 1, -1, -1):
            if self.variables[number][0] == name:
                self._env.budget.spend((len(self.variables) - number) // _VARIABLES_PER_STEP)
                return number
        raise Fault(f"the variable {name} is not set here")

    def _fields(self, value: Value, names: Sequence[str], path: str, at: int) -> Value:
        self._env.budget.spend(len(names) // _NAMES_PER_STEP)
        for number, name in enumerate(names):
            if isinstance(value, dict) and name in value:
                value = value[name]
                continue
            self.at = at
            value = read_field(value, name, path + "".join(f".{key}" for key in names[:number]))
        return value

    def _call(
        self,
        node: FunctionName,
        args: Sequence[Operand],
        dot: Value,
        path: str,
        final: Value | _Missing,
    ) -> Value:
        function = self._functions[node.name]
        count = len(args) + (final is not _MISSING)
        function.check_count(count)
        if node.name in ("and", "or"):
            return self._choose(node.name, args, dot, path, final)
        given = [
            self._argument(arg, function, number, dot, path) for number, arg in enumerate(args)
        ]
        self.at = node.at
        if final is not _MISSING:
            given.append(check_type(final, function.param(len(args)), node.name))
        self._env.budget.spend(1 + sum(map(weigh, given)))
        call = function.call
        result = call(self._env, *given) if function.with_env else call(*given)
        self._check_result(result)
        return result

    def _check_result(self, result: Value) -> None:
        if isinstance(result, str):
            self._env.budget.check_text(size(result))
        elif isinstance(result, list | dict):
            self._env.budget.check_items(len(result))

    def _choose(
        self,
        name: str,
        args: Sequence[Operand],
        dot: Value,
        path: str,
        final: Value | _Missing,
    ) -> Value:
        """Return the value of `and` or `or`, with short-circuit evaluation."""
        value: Value = None
        for arg in args:
            value = self._operand(arg, dot, path)
            if is_true(value) == (name == "or"):
                return value
        return value if final is _MISSING else final

    def _argument(
        self, node: Operand, function: Function, number: int, dot: Value, path: str
    ) -> Value:
        param = function.param(number)
        value = _literal(node, param)
        if value is _MISSING:
            value = self._operand(node, dot, path)
            self.at = node.at
            typed = isinstance(node, Field | Chain) or (isinstance(node, Variable) and node.names)
            if value is None and typed and param is Param.MAP:
                raise Fault(f"{function.name} needs a map here, not null")
        return check_type(value, param, function.name)


def _literal(node: Operand, param: Param) -> Value | _Missing:
    """Convert an untyped number constant to the parameter's type, as Go does."""
    if isinstance(node, Number):
        if param is Param.INT and node.integer is not None:
            return node.integer
        if param is Param.FLOAT and node.real is not None:
            return node.real
    return _MISSING


def read_field(value: Value, name: str, path: str) -> Value:
    """Return a field of a value; the error for a missing one names the fields that exist."""
    here = path or "the root"
    if isinstance(value, dict):
        raise Fault(
            f"{path}.{name} does not exist",
            hint=_suggest(name, value, here),
            path=f"{path}.{name}",
        )
    if isinstance(value, Version) and name in value.fields:
        return value.fields[name]
    if value is None:
        raise Fault(
            f"{here} is null, so {path}.{name} does not exist",
            hint='Check it first: `{{with …}}`, or read it with `dig "key" DEFAULT map`.',
            path=f"{path}.{name}",
        )
    raise Fault(f"{here} is a {type_of(value)}, so it has no key {name!r}", path=f"{path}.{name}")


_SHOWN_KEYS = 8
_MOST_KEYS = 1000
_LONGEST_KEY = 100


def _suggest(name: str, items: Mapping[str, Value], where: str) -> str:
    keys = [key for key in itertools.islice(items, _MOST_KEYS) if isinstance(key, str)]
    close = difflib.get_close_matches(name[:_LONGEST_KEY], keys, n=3)
    if close:
        return f"Did you mean {' or '.join(f'`{key}`' for key in close)}?"
    if not keys:
        return f"{where} is empty."
    shown = ", ".join(f"`{key}`" for key in sorted(keys)[:_SHOWN_KEYS])
    more = ", …" if len(keys) > _SHOWN_KEYS else ""
    return f"{where} has {shown}{more}."
