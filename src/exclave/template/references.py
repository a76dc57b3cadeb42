"""Static analysis: the paths that a template can read, found without values."""

import itertools
from bisect import bisect_right
from dataclasses import dataclass
from typing import assert_never

from exclave.template.nodes import (
    Action,
    Body,
    Bool,
    Break,
    Chain,
    Command,
    Continue,
    Dot,
    Field,
    Function,
    If,
    Include,
    Nil,
    Number,
    Operand,
    Pipe,
    Range,
    String,
    Template,
    Text,
    Variable,
    With,
)
from exclave.template.origins import (
    ELEMENT,
    ROOT,
    Origins,
    TooManyOrigins,
    below,
    follow,
    join,
    look_up,
)


@dataclass(frozen=True, slots=True)
class Reference:
    """A path that a template can read, such as `("nuon", "components", "x", "outputs", "y")`."""

    path: tuple[str, ...]

    exact: bool
    """False: something below the path is read, and only the values decide what (a computed key,
    the elements of a loop)."""

    whole: bool
    """The value is printed or handed to a function; false: it is only tested or passed through."""

    optional: bool
    """The template tolerates that the last key is missing (`index`, `get`, `dig`, `hasKey`)."""

    line: int
    column: int


Given = tuple[Origins, int]
"""An argument: its origins and its offset in the text."""

_MOST_NODES = 100_000
_DEEPEST_INCLUDE = 16
_VARIABLES_PER_NODE = 32
_PASSING = frozenset({"and", "or", "coalesce", "default", "ternary", "first", "last", "deepCopy"})
"""Functions whose result can be one of their arguments, or an element of it."""

_ELEMENTS = frozenset({"first", "last"})


def find_references(template: Template) -> list[Reference]:
    """Return every path that the template can read, in source order.

    A template that is too complex to follow gets an inexact reference to its whole root key.
    """
    finder = _Finder(template)
    try:
        finder.walk(template.body, ROOT)
    except (TooManyOrigins, RecursionError):
        finder.give_up()
    return finder.result()


class _Finder:
    """Walks all branches of a template, because every condition can go either way."""

    def __init__(self, template: Template) -> None:
        self._template = template
        self._variables: list[tuple[str, Origins]] = [("$", ROOT)]
        self._found: set[tuple[int, tuple[str, ...], bool, bool, bool]] = set()
        self._depth = 0
        self._nodes = 0
        self._changed = False
        self._done: set[tuple[str, Origins]] = set()

    def result(self) -> list[Reference]:
        """Return the references with their lines and columns."""
        text = self._template.text
        starts = [0, *(at + 1 for at, char in enumerate(text) if char == "\n")]
        references = []
        for at, path, exact, whole, optional in sorted(self._found):
            line = bisect_right(starts, at)
            column = at - starts[line - 1] + 1
            references.append(Reference(path, exact, whole, optional, line, column))
        return references

    def give_up(self) -> None:
        """Record that anything below the root key can be read."""
        self._found.add((0, (self._template.root,), False, True, False))

    def note(self, origins: Origins, at: int, *, whole: bool) -> None:
        """Record that a value is read."""
        self._count(len(origins))
        for origin in origins:
            path, exact = origin.path, True
            if ELEMENT in path:
                path, exact = path[: path.index(ELEMENT)], False
            if not path and whole:
                path = (self._template.root,)
            if path:
                self._found.add((at, path, exact, whole, origin.optional))

    def walk(self, body: Body, dot: Origins) -> None:
        known = len(self._variables)
        for node in body:
            self._count()
            match node:
                case Text() | Break() | Continue():
                    pass
                case Action():
                    value = self._pipe(node.pipe, dot)
                    self.note(value, node.pipe.at, whole=not node.pipe.variables)
                case If() | With():
                    self._walk_choice(node, dot)
                case Range():
                    self._walk_range(node, dot)
                case Include():
                    self._walk_include(node, dot)
                case _:
                    assert_never(node)
        del self._variables[known:]

    def _count(self, work: int = 1) -> None:
        self._nodes += work
        if self._nodes > _MOST_NODES:
            raise TooManyOrigins

    def _walk_choice(self, node: If | With, dot: Origins) -> None:
        known = len(self._variables)
        for branch in node.branches:
            value = self._pipe(branch.pipe, dot)
            self.note(value, branch.pipe.at, whole=False)
            self.walk(branch.body, value if isinstance(node, With) else dot)
        if node.otherwise is not None:
            self.walk(node.otherwise, dot)
        del self._variables[known:]

    def _walk_range(self, node: Range, dot: Origins) -> None:
        known = len(self._variables)
        value = self._pipe(node.pipe, dot)
        self.note(value, node.pipe.at, whole=False)
        items = below(value, ELEMENT)
        names = node.pipe.variables
        if names:
            self._set(names[-1], items, assigns=node.pipe.assigns)
            for name in names[:-1]:
                self._set(name, (), assigns=node.pipe.assigns)
        self._changed = False
        self.walk(node.body, items)
        if self._changed:
            self.walk(node.body, items)
        if node.otherwise is not None:
            self.walk(node.otherwise, dot)
        del self._variables[known:]

    def _walk_include(self, node: Include, dot: Origins) -> None:
        value: Origins = ()
        if node.pipe is not None:
            value = self._pipe(node.pipe, dot)
            self.note(value, node.pipe.at, whole=False)
        body = self._template.parts.get(node.name)
        call = (node.name, value)
        if body is None or call in self._done:
            return
        if self._depth >= _DEEPEST_INCLUDE:
            raise TooManyOrigins
        self._done.add(call)
        self._depth += 1
        outer, self._variables = self._variables, [("$", value)]
        self.walk(body, value)
        self._variables = outer
        self._depth -= 1

    def _set(self, name: str, value: Origins, *, assigns: bool) -> None:
        if not assigns:
            self._variables.append((name, value))
            return
        for number in range(len(self._variables) - 1, -1, -1):
            if self._variables[number][0] == name:
                merged = join(self._variables[number][1], value)
                self._changed |= merged != self._variables[number][1]
                self._variables[number] = (name, merged)
                return

    def _pipe(self, pipe: Pipe, dot: Origins) -> Origins:
        result = self._command(pipe.commands[0], dot, [])
        for before, command in itertools.pairwise(pipe.commands):
            result = self._command(command, dot, [(result, before.at)])
        for name in pipe.variables:
            self._set(name, result, assigns=pipe.assigns)
        return result

    def _command(self, command: Command, dot: Origins, piped: list[Given]) -> Origins:
        first = command.args[0]
        if not isinstance(first, Function):
            return self._operand(first, dot)
        args = command.args[1:]
        given = [(self._operand(arg, dot), arg.at) for arg in args]
        return self._call(first, list(args), given + piped)

    def _call(self, node: Function, args: list[Operand], pairs: list[Given]) -> Origins:
        self._count()
        given = [origins for origins, _ in pairs]
        match node.name:
            case "index" if given:
                self._note_all(pairs[1:])
                piped = len(given) > len(args)
                return look_up(given[0], [*args[1:], *([node] if piped else [])])
            case "get" | "hasKey" if given:
                value = look_up(given[0], args[1:2] or [node])
                self.note(value, node.at, whole=False)
                return value if node.name == "get" else ()
            case "dig" if given:
                self._note_all(pairs[:-1])
                value = look_up(given[-1], args[: max(0, len(given) - 2)])
                return join(value, *given[-2:-1])
            case _:
                self._note_all(pairs)
        if node.name not in _PASSING:
            return ()
        joined = join(*given)
        return join(joined, below(joined, ELEMENT)) if node.name in _ELEMENTS else joined

    def _note_all(self, pairs: list[Given]) -> None:
        for origins, at in pairs:
            self.note(origins, at, whole=True)

    def _operand(self, node: Operand, dot: Origins) -> Origins:
        match node:
            case Dot():
                return dot
            case Nil() | Bool() | String() | Number():
                return ()
            case Field():
                return self._follow(dot, node.names)
            case Variable():
                return self._follow(self._variable(node.name), node.names)
            case Function():
                return self._call(node, [], [])
            case Chain():
                return self._follow(self._operand(node.base, dot), node.names)
            case Pipe():
                return self._pipe(node, dot)
            case _:
                assert_never(node)

    def _follow(self, origins: Origins, names: tuple[str, ...]) -> Origins:
        self._count(len(origins))
        return follow(origins, names)

    def _variable(self, name: str) -> Origins:
        for distance, (known, value) in enumerate(reversed(self._variables)):
            if known == name:
                self._count(distance // _VARIABLES_PER_NODE)
                return value
        return ()
