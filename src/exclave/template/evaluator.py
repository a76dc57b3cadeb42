"""The evaluator: walks the syntax tree of a template and writes the output."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import assert_never

from exclave.template import printing
from exclave.template.expressions import Expressions
from exclave.template.functions import FUNCTIONS
from exclave.template.functions.dicts import CHANGING, copy_value
from exclave.template.functions.signature import Env, Function
from exclave.template.layouts import make_time
from exclave.template.limits import Budget, weigh
from exclave.template.nodes import (
    Action,
    Body,
    Break,
    Chain,
    Continue,
    Field,
    If,
    Include,
    Node,
    Pipe,
    Range,
    Template,
    Text,
    Variable,
    With,
)
from exclave.template.problems import Fault, TemplateProblem, find_position
from exclave.template.text import finish
from exclave.template.values import Time, Value, is_true, type_of


def run_template(
    template: Template, values: Mapping[str, object], budget: Budget, now: datetime | None
) -> str:
    """Return the rendered text; a template that can change maps gets a copy of the values."""
    root: dict[str, Value] = dict(values)
    if template.functions & CHANGING:
        root = _copy(template, root, budget)
    time = None if now is None else make_time(now)
    return Evaluator(template, FUNCTIONS, budget, time).run(root)


def _copy(template: Template, root: dict[str, Value], budget: Budget) -> dict[str, Value]:
    try:
        return {key: copy_value(value, budget) for key, value in root.items()}
    except (Fault, RecursionError):
        raise TemplateProblem("the values are too large to change", file=template.name) from None


class Signal(Enum):
    """How a body ended: normally, or by a `break` or `continue` that the loop must handle."""

    DONE = "done"
    BREAK = "break"
    CONTINUE = "continue"


@dataclass(frozen=True, slots=True)
class Place:
    """The current value (dot) and its path from the root, for error messages."""

    value: Value
    path: str


class Evaluator:
    """A single rendering of one template."""

    def __init__(
        self,
        template: Template,
        functions: Mapping[str, Function],
        budget: Budget,
        now: Time | None,
    ) -> None:
        self._template = template
        self._budget = budget
        self._eval = Expressions(functions, Env(self._budget, now))
        self._pieces: list[str] = []
        self._size = 0

    def run(self, values: dict[str, Value]) -> str:
        """Return the template rendered with this root value."""
        self._eval.variables = [("$", values)]
        try:
            self._walk(self._template.body, Place(values, ""))
        except Fault as fault:
            raise self._problem(fault) from None
        except RecursionError:
            raise self._problem(Fault("the template or a value nests too deeply")) from None
        return finish("".join(self._pieces))

    def _problem(self, fault: Fault) -> TemplateProblem:
        position = find_position(self._template.text, self._eval.at)
        return TemplateProblem(
            fault.message,
            hint=fault.hint,
            file=self._template.name,
            line=position.line,
            column=position.column,
            path=fault.path,
        )

    def _write(self, text: str) -> None:
        self._size += len(text)
        if self._size > self._budget.limits.output:
            raise Fault(f"the result is larger than {self._budget.limits.output} characters")
        self._budget.spend(weigh(text))
        self._pieces.append(text)

    def _walk(self, body: Body, dot: Place) -> Signal:
        self._budget.enter()
        signal = Signal.DONE
        for node in body:
            signal = self._walk_node(node, dot)
            if signal is not Signal.DONE:
                break
        self._budget.depth -= 1
        return signal

    def _walk_node(self, node: Node, dot: Place) -> Signal:
        self._budget.spend()
        self._eval.at = node.at
        match node:
            case Text():
                self._write(node.text)
            case Action():
                self._walk_action(node, dot)
            case If():
                return self._walk_choice(node, dot)
            case With():
                return self._walk_choice(node, dot)
            case Range():
                return self._walk_range(node, dot)
            case Include():
                self._walk_include(node, dot)
            case Break():
                return Signal.BREAK
            case Continue():
                return Signal.CONTINUE
            case _:
                assert_never(node)
        return Signal.DONE

    def _walk_action(self, node: Action, dot: Place) -> None:
        value = self._eval.pipe(node.pipe, dot.value, dot.path)
        if node.pipe.variables:
            return
        self._eval.at = node.at
        self._write("<no value>" if value is None else printing.show(value, self._budget))

    def _walk_choice(self, node: If | With, dot: Place) -> Signal:
        known = len(self._eval.variables)
        signal = Signal.DONE
        for branch in node.branches:
            value = self._eval.pipe(branch.pipe, dot.value, dot.path)
            if is_true(value):
                inner = dot
                if isinstance(node, With):
                    inner = Place(value, find_path(branch.pipe, dot.path))
                signal = self._walk(branch.body, inner)
                break
        else:
            if node.otherwise is not None:
                signal = self._walk(node.otherwise, dot)
        del self._eval.variables[known:]
        return signal

    def _walk_range(self, node: Range, dot: Place) -> Signal:
        known = len(self._eval.variables)
        value = self._eval.pipe(node.pipe, dot.value, dot.path)
        self._eval.at = node.at
        self._budget.spend(weigh(value))
        signal, ran = Signal.DONE, False
        path = f"{find_path(node.pipe, dot.path)}[…]"
        top = len(self._eval.variables)
        for key, item in iterate(value, len(node.pipe.variables)):
            ran = True
            self._budget.spend()
            self._set_loop_variables(node.pipe, key, item, top)
            signal = self._walk(node.body, Place(item, path))
            del self._eval.variables[top:]
            if signal is Signal.BREAK:
                break
        if not ran and node.otherwise is not None:
            signal = self._walk(node.otherwise, dot)
        else:
            signal = Signal.DONE
        del self._eval.variables[known:]
        return signal

    def _set_loop_variables(self, pipe: Pipe, key: Value, item: Value, top: int) -> None:
        names = pipe.variables
        if not names:
            return
        pairs = [(names[0], item)] if len(names) == 1 else [(names[0], key), (names[1], item)]
        if pipe.assigns:
            for name, value in pairs:
                self._eval.assign(name, value)
        elif len(names) == 1:
            self._eval.variables[top - 1] = pairs[0]
        else:
            self._eval.variables[top - 2 : top] = pairs

    def _walk_include(self, node: Include, dot: Place) -> None:
        body = self._template.parts.get(node.name)
        if body is None and node.name == self._template.name:
            body = self._template.body
        if body is None:
            raise Fault(f"there is no template {node.name!r}")
        value, path = None, ""
        if node.pipe is not None:
            value = self._eval.pipe(node.pipe, dot.value, dot.path)
            path = find_path(node.pipe, dot.path)
        outer, self._eval.variables = self._eval.variables, [("$", value)]
        self._walk(body, Place(value, path))
        self._eval.variables = outer


def iterate(value: Value, variables: int) -> Iterable[tuple[Value, Value]]:
    """Return the (key, element) pairs that `range` iterates over."""
    match value:
        case None:
            return ()
        case list():
            return enumerate(list(value))
        case dict():
            return [(key, value[key]) for key in printing.sort_keys(value)]
        case bool():
            raise Fault("range cannot go through a bool")
        case int():
            if variables > 1:
                raise Fault("a range over a number has one variable")
            kind = type(value)
            return ((None, kind(number)) for number in range(value))
        case _:
            raise Fault(f"range cannot go through a {type_of(value)}")


def find_path(pipe: Pipe, dot: str) -> str:
    """Return the path that a pipeline reads, or `(…)` if it is not a plain path."""
    if len(pipe.commands) == 1 and len(pipe.commands[0].args) == 1:
        match pipe.commands[0].args[0]:
            case Field(_, names):
                return dot + "".join(f".{name}" for name in names)
            case Variable(_, name, names):
                return ("" if name == "$" else name) + "".join(f".{key}" for key in names)
            case Pipe() as inner:
                return find_path(inner, dot)
            case Chain(_, Pipe() as base, names):
                return find_path(base, dot) + "".join(f".{key}" for key in names)
            case _:
                return "(…)"
    return "(…)"
