"""The expression parser: pipelines, commands and operands."""

import difflib
from abc import ABC, abstractmethod
from collections.abc import Container, Iterable

from exclave.template import literals
from exclave.template.lexer import Kind, Token
from exclave.template.names import COUNTS, OF_HELM, OPERATORS
from exclave.template.nodes import (
    Bool,
    Chain,
    Command,
    Dot,
    Field,
    Function,
    Nil,
    Number,
    Operand,
    Pipe,
    String,
    Variable,
)
from exclave.template.problems import TemplateProblem, find_position

_STARTS = frozenset(
    {
        Kind.BOOL, Kind.CHAR, Kind.DOT, Kind.FIELD, Kind.NAME, Kind.NUMBER, Kind.NIL, Kind.RAW,
        Kind.STRING, Kind.VARIABLE, Kind.LEFT,
    }
)  # fmt: skip
_MOST_RANGE_VARIABLES = 2
_LONGEST_NAME = 100


class OperandParser(ABC):
    """Parses expressions; its subclass adds statements."""

    def __init__(
        self, tokens: list[Token], text: str, name: str, functions: Container[str], depth: int
    ) -> None:
        self.text = text
        self.name = name
        self.used: set[str] = set()
        self.miscounts: list[tuple[str, int, int]] = []
        self._tokens = tokens
        self._next = 0
        self._functions = functions
        self._depth = 0
        self._deepest = depth

    @abstractmethod
    def find_variable(self, name: str) -> bool:
        """Return whether a variable is declared in this scope."""

    @abstractmethod
    def declare(self, name: str) -> None:
        """Declare a variable until the end of the block."""

    def peek(self) -> Token:
        """Return the next token without consuming it."""
        return self._tokens[self._next]

    def next(self) -> Token:
        """Consume and return the next token; the last one is never consumed."""
        token = self._tokens[self._next]
        if token.kind is not Kind.END:
            self._next += 1
        return token

    def skip_space(self) -> None:
        """Skip spaces between operands."""
        while self.peek().kind is Kind.SPACE:
            self._next += 1

    def expect(self, kind: Kind, where: str) -> Token:
        """Consume and return a token; raise if it is of another kind."""
        token = self.next()
        if token.kind is not kind:
            raise self.problem(f"unexpected {token.text!r} in {where}", token.at)
        return token

    def enter(self, at: int) -> None:
        """Enter a nesting level; raise if it is too deep."""
        self._depth += 1
        if self._depth > self._deepest:
            raise self.problem(f"the template nests deeper than {self._deepest} levels", at)

    def leave(self) -> None:
        """Leave a nesting level."""
        self._depth -= 1

    def problem(self, message: str, at: int, hint: str = "") -> TemplateProblem:
        """Return a problem at an offset."""
        position = find_position(self.text, at)
        return TemplateProblem(
            message, hint=hint, file=self.name, line=position.line, column=position.column
        )

    def parse_pipe(self, where: str, end: Kind) -> Pipe:
        """Parse a pipeline, including the token that ends it."""
        self.skip_space()
        start = self.peek().at
        variables, assigns = self._parse_variables(where)
        commands: list[Command] = []
        while True:
            self.skip_space()
            token = self.peek()
            if token.kind is end:
                self.next()
                break
            if token.kind not in _STARTS:
                raise self.problem(f"unexpected {token.text!r} in {where}", token.at)
            commands.append(self._parse_command())
        if not commands:
            raise self.problem(f"{where} needs a value", start)
        for command in commands[1:]:
            if isinstance(command.args[0], Bool | Dot | Nil | Number | String):
                raise self.problem("this cannot take a value from a pipe", command.at)
        for number, command in enumerate(commands):
            self._count_arguments(command, len(command.args) - (number == 0))
        return Pipe(start, tuple(variables), assigns, tuple(commands))

    def _count_arguments(self, command: Command, given: int) -> None:
        function = command.args[0]
        if isinstance(function, Function) and function.name in COUNTS:
            wanted, or_more = COUNTS[function.name]
            if given < wanted or (given > wanted and not or_more):
                self.miscounts.append((function.name, given, function.at))

    def _parse_variables(self, where: str) -> tuple[list[str], bool]:
        """Parse `$x :=`, `$x =` or, in a range, `$i, $x :=`."""
        names: list[str] = []
        while self.peek().kind is Kind.VARIABLE:
            mark, token = self._next, self.next()
            self.skip_space()
            follows = self.peek()
            if follows.kind in (Kind.ASSIGN, Kind.DECLARE):
                self.next()
                names.append(token.text)
                assigns = follows.kind is Kind.ASSIGN
                if not (assigns and self.find_variable(token.text)):
                    self.declare(token.text)
                return names, assigns
            if follows.kind is not Kind.COMMA:
                self._next = mark
                break
            self.next()
            names.append(token.text)
            self.declare(token.text)
            self.skip_space()
            if where != "range" or len(names) >= _MOST_RANGE_VARIABLES:
                raise self.problem(f"too many variables in {where}", token.at)
            if self.peek().kind not in (Kind.VARIABLE, Kind.CLOSE, Kind.RIGHT):
                raise self.problem("range can only set variables", self.peek().at)
        return names, False

    def _parse_command(self) -> Command:
        start = self.peek().at
        args: list[Operand] = []
        while True:
            self.skip_space()
            operand = self._parse_operand()
            if operand is not None:
                args.append(operand)
            token = self.peek()
            if token.kind is Kind.SPACE:
                continue
            if token.kind is Kind.PIPE:
                self.next()
            elif token.kind not in (Kind.CLOSE, Kind.RIGHT):
                hint = OPERATORS.get(token.text, "")
                raise self.problem(f"unexpected {token.text!r} after an operand", token.at, hint)
            break
        if not args:
            raise self.problem("empty command", start)
        return Command(start, tuple(args))

    def _parse_operand(self) -> Operand | None:
        term = self._parse_term()
        if term is None or self.peek().kind is not Kind.FIELD:
            return term
        names: list[str] = []
        while self.peek().kind is Kind.FIELD:
            names.append(self.next().text[1:])
        match term:
            case Field(at, first):
                return Field(at, (*first, *names))
            case Variable(at, name, first):
                return Variable(at, name, (*first, *names))
            case Pipe() | Function():
                return Chain(term.at, term, tuple(names))
            case _:
                raise self.problem("a constant has no fields", term.at)

    def _parse_term(self) -> Operand | None:
        token = self.peek()
        if token.kind not in _STARTS:
            return None
        self.next()
        match token.kind:
            case Kind.NAME:
                return self._parse_function(token)
            case Kind.DOT:
                return Dot(token.at)
            case Kind.NIL:
                return Nil(token.at)
            case Kind.VARIABLE:
                return self._parse_variable(token)
            case Kind.FIELD:
                return Field(token.at, (token.text[1:],))
            case Kind.BOOL:
                return Bool(token.at, token.text == "true")
            case Kind.LEFT:
                self.enter(token.at)
                pipe = self.parse_pipe("parentheses", Kind.RIGHT)
                self.leave()
                return pipe
            case _:
                return self._parse_literal(token)

    def _parse_literal(self, token: Token) -> Operand:
        try:
            if token.kind in (Kind.STRING, Kind.RAW):
                return String(token.at, literals.unquote(token.text))
            if token.kind is Kind.CHAR:
                code = literals.parse_char(token.text)
                return Number(token.at, token.text, code, float(code), code)
            parsed = literals.parse_number(token.text)
        except literals.BadLiteral as bad:
            raise self.problem(str(bad), token.at) from None
        return Number(token.at, token.text, parsed.integer, parsed.real, parsed.ideal)

    def _parse_function(self, token: Token) -> Function:
        if token.text not in self._functions:
            known = self._functions if isinstance(self._functions, Iterable) else ()
            hint = _suggest(token.text, known)
            raise self.problem(f"there is no function {token.text!r}", token.at, hint)
        self.used.add(token.text)
        return Function(token.at, token.text)

    def _parse_variable(self, token: Token) -> Variable:
        if not self.find_variable(token.text):
            hint = f"Declare it in this block: `{{{{{token.text} := …}}}}`."
            raise self.problem(f"the variable {token.text} is not declared", token.at, hint)
        return Variable(token.at, token.text, ())


def _suggest(name: str, known: Iterable[str]) -> str:
    if name in OF_HELM:
        return f"Only Helm has it. {OF_HELM[name]}"
    close = difflib.get_close_matches(name[:_LONGEST_NAME], list(known), n=1)
    if close:
        return f"Did you mean `{close[0]}`?"
    return f"If you mean a value, it starts with a dot: `.{name}`."
