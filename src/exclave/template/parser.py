"""The statement parser: builds the syntax tree from tokens."""

from collections.abc import Container
from dataclasses import dataclass, field

from exclave.template import literals
from exclave.template.lexer import Kind, Lexer, Token
from exclave.template.limits import Limits
from exclave.template.nodes import (
    Action,
    Body,
    Branch,
    Break,
    Continue,
    If,
    Include,
    Node,
    Range,
    Template,
    Text,
    With,
)
from exclave.template.operands import OperandParser
from exclave.template.problems import TemplateProblem, find_position


@dataclass(slots=True)
class Scope:
    """The scope of a block: its variables, and whether it is inside a loop."""

    variables: list[str] = field(default_factory=lambda: ["$"])
    loops: int = 0


class Parser(OperandParser):
    """Parses one template, with one token of look-ahead (spaces apart)."""

    def __init__(
        self, text: str, name: str, root: str, functions: Container[str], limits: Limits
    ) -> None:
        tokens = Lexer(text, name, limits.tokens).run()
        self._count = len(tokens)
        super().__init__(tokens, text, name, functions, limits.depth)
        self._root = root
        self._scope = Scope()
        self._parts: dict[str, Body] = {}
        self._calls: list[tuple[str, int]] = []

    def run(self) -> Template:
        """Return the whole template, parsed."""
        body: list[Node] = []
        while self.peek().kind is not Kind.END:
            node = self._parse_node(top=True)
            if isinstance(node, Token):
                raise self.problem(f"unexpected {{{{{node.text}}}}}", node.at, _STRAY)
            if node is not None:
                body.append(node)
        return Template(
            name=self.name,
            text=self.text,
            root=self._root,
            body=tuple(body),
            parts=self._parts,
            functions=frozenset(self.used),
            miscounts=tuple(self.miscounts),
            unknown_part=next((call for call in self._calls if call[0] not in self._parts), None),
            tokens=self._count,
        )

    def find_variable(self, name: str) -> bool:
        """Return whether a variable is declared in this scope."""
        return name in self._scope.variables

    def declare(self, name: str) -> None:
        """Declare a variable until the end of the block."""
        self._scope.variables.append(name)
        if len(self._scope.variables) > _MOST_VARIABLES:
            raise self.problem(
                f"more than {_MOST_VARIABLES} variables in one place", self.peek().at
            )

    def _parse_node(self, *, top: bool = False) -> Node | Token | None:
        """Parse text or an action; `else` and `end` are returned as tokens."""
        token = self.next()
        if token.kind is Kind.TEXT:
            return Text(token.at, token.text)
        self.skip_space()
        word = self.peek()
        if word.kind is not Kind.KEYWORD:
            return Action(token.at, self.parse_pipe("action", Kind.CLOSE))
        self.next()
        match word.text:
            case "if" | "with":
                return self._parse_choice(word)
            case "range":
                return self._parse_range(word)
            case "template":
                return self._parse_include(word)
            case "block":
                return self._parse_block(word)
            case "break" | "continue":
                return self._parse_jump(word)
            case "define" if top:
                self._parse_definition(word)
                return None
            case "else" | "end":
                return self._parse_mark(word)
            case _:
                raise self.problem(
                    f"unexpected {word.text}", word.at, "Definitions stand at the top level."
                )

    def _parse_mark(self, word: Token) -> Token:
        self.skip_space()
        follows = self.peek()
        if word.text == "else" and follows.kind is Kind.KEYWORD and follows.text in ("if", "with"):
            return word
        self.expect(Kind.CLOSE, word.text)
        return word

    def _parse_jump(self, word: Token) -> Break | Continue:
        self.skip_space()
        self.expect(Kind.CLOSE, word.text)
        if self._scope.loops == 0:
            raise self.problem(f"{word.text} outside of a range", word.at)
        return Break(word.at) if word.text == "break" else Continue(word.at)

    def _parse_body(self, opener: Token) -> tuple[Body, Token]:
        """Parse a body up to its `else` or `end`."""
        self.enter(opener.at)
        body: list[Node] = []
        while self.peek().kind is not Kind.END:
            node = self._parse_node()
            if isinstance(node, Token):
                self.leave()
                return tuple(body), node
            if node is not None:
                body.append(node)
        raise self.problem(
            f"this {opener.text} has no end", opener.at, "Close the block with `{{end}}`."
        )

    def _parse_choice(self, word: Token) -> If | With:
        known = len(self._scope.variables)
        branches: list[Branch] = []
        otherwise: Body | None = None
        while True:
            pipe = self.parse_pipe(word.text, Kind.CLOSE)
            body, mark = self._parse_body(word)
            branches.append(Branch(pipe, body))
            if mark.text == "end":
                break
            if self.peek().kind is Kind.KEYWORD:
                again = self.next()
                if again.text != word.text:
                    raise self.problem(f"else {again.text} does not fit {word.text}", again.at)
                continue
            otherwise, mark = self._parse_body(word)
            if mark.text != "end":
                raise self.problem("a second else in one block", mark.at)
            break
        del self._scope.variables[known:]
        kind = If if word.text == "if" else With
        return kind(word.at, tuple(branches), otherwise)

    def _parse_range(self, word: Token) -> Range:
        known = len(self._scope.variables)
        pipe = self.parse_pipe("range", Kind.CLOSE)
        self._scope.loops += 1
        body, mark = self._parse_body(word)
        self._scope.loops -= 1
        otherwise: Body | None = None
        if mark.text == "else":
            if self.peek().kind is Kind.KEYWORD:
                raise self.problem("a range has a plain else only", self.peek().at)
            otherwise, mark = self._parse_body(word)
            if mark.text != "end":
                raise self.problem("a second else in one block", mark.at)
        del self._scope.variables[known:]
        return Range(word.at, pipe, body, otherwise)

    def _parse_name(self, word: Token) -> str:
        self.skip_space()
        token = self.next()
        if token.kind not in (Kind.STRING, Kind.RAW):
            raise self.problem(
                f"{word.text} needs a name", token.at, f'Write `{{{{{word.text} "name"}}}}`.'
            )
        try:
            return literals.unquote(token.text)
        except literals.BadLiteral as bad:
            raise self.problem(str(bad), token.at) from None

    def _parse_include(self, word: Token) -> Include:
        name = self._parse_name(word)
        self._calls.append((name, word.at))
        self.skip_space()
        if self.peek().kind is Kind.CLOSE:
            self.next()
            return Include(word.at, name, None)
        return Include(word.at, name, self.parse_pipe("template", Kind.CLOSE))

    def _parse_block(self, word: Token) -> Include:
        name = self._parse_name(word)
        pipe = self.parse_pipe("block", Kind.CLOSE)
        self._parse_part(word, name)
        return Include(word.at, name, pipe)

    def _parse_definition(self, word: Token) -> None:
        name = self._parse_name(word)
        self.skip_space()
        self.expect(Kind.CLOSE, "define")
        self._parse_part(word, name)

    def _parse_part(self, word: Token, name: str) -> None:
        outer, self._scope = self._scope, Scope()
        body, mark = self._parse_body(word)
        self._scope = outer
        if mark.text != "end":
            raise self.problem(f"unexpected else in {word.text}", mark.at)
        known = self._parts.get(name)
        if known is None or _is_blank(known):
            self._parts[name] = body
        elif not _is_blank(body):
            raise self.problem(f"the template {name!r} is defined twice", word.at)


_MOST_VARIABLES = 1000
_STRAY = "It closes nothing: remove it, or open the block that it belongs to."


def _is_blank(body: Body) -> bool:
    return all(isinstance(node, Text) and not node.text.strip() for node in body)


def parse_template(
    text: str, name: str, root: str, functions: Container[str], limits: Limits
) -> Template:
    """Return a parsed template that may call only the given functions."""
    if len(text) > limits.source:
        raise TemplateProblem(f"the template is longer than {limits.source} characters", file=name)
    try:
        return Parser(text, name, root, functions, limits).run()
    except RecursionError:
        position = find_position(text, 0)
        raise TemplateProblem(
            "the template nests too deeply", file=name, line=position.line, column=position.column
        ) from None
