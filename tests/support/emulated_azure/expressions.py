"""Expressions of Azure Resource Manager: a parser, strict about everything that it does not know."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

TOKEN = re.compile(r"\s*('(?:[^']|'')*'|-?\d+|[A-Za-z_]\w*|[().,\[\]])")
Functions = Mapping[str, Callable[..., Any]]


class BadExpressionError(ValueError):
    """Azure would refuse the template."""


@dataclass(frozen=True)
class Call:
    """A call of a function."""

    name: str
    arguments: tuple[Any, ...]


@dataclass(frozen=True)
class Read:
    """A property of a value."""

    value: Any
    key: str


def is_expression(text: str) -> bool:
    """Return whether a text of a template is an expression."""
    return text.startswith("[") and text.endswith("]") and not text.startswith("[[")


def parse(text: str) -> Any:
    """Return the tree of an expression without its brackets."""
    parser = _Parser(_split(text))
    tree = parser.read_value()
    if parser.rest:
        message = f"{' '.join(parser.rest)[:60]} follows an expression"
        raise BadExpressionError(message)
    return tree


def _split(text: str) -> list[str]:
    tokens, at = [], 0
    while at < len(text):
        match = TOKEN.match(text, at)
        if match is None:
            message = f"not an expression: {text[at : at + 40]}"
            raise BadExpressionError(message)
        tokens.append(match[1])
        at = match.end()
    return tokens


class _Parser:
    def __init__(self, tokens: list[str]) -> None:
        self.rest = tokens

    def read_value(self) -> Any:
        token = self._read_token()
        value: Any
        if token.startswith("'"):
            value = token[1:-1].replace("''", "'")
        elif token.lstrip("-").isdigit():
            value = int(token)
        elif token[0].isalpha():
            value = Call(token, tuple(self._read_arguments()))
        else:
            message = f"{token} is no value"
            raise BadExpressionError(message)
        while self.rest and self.rest[0] in (".", "["):
            value = Read(value, self._read_key())
        return value

    def _read_key(self) -> str:
        if self._read_token() == ".":
            return self._read_token()
        key = self.read_value()
        self._expect("]")
        assert isinstance(key, str)
        return key

    def _read_arguments(self) -> list[Any]:
        self._expect("(")
        arguments = []
        while self.rest[:1] != [")"]:
            arguments.append(self.read_value())
            if self.rest[:1] == [","]:
                self._read_token()
                assert self.rest[:1] != [")"], "a comma before a bracket"
        self._expect(")")
        return arguments

    def _read_token(self) -> str:
        if not self.rest:
            message = "an expression ends too early"
            raise BadExpressionError(message)
        return self.rest.pop(0)

    def _expect(self, wanted: str) -> None:
        token = self._read_token()
        if token != wanted:
            message = f"{token} stands for {wanted}"
            raise BadExpressionError(message)


def evaluate(tree: Any, functions: Functions, bound: Mapping[str, Any] | None = None) -> Any:
    """Return the value of a tree."""
    match tree:
        case Read(value, key):
            found = evaluate(value, functions, bound)
            if not isinstance(found, dict) or key not in found:
                message = f"there is no `{key}` in {str(found)[:80]}"
                raise BadExpressionError(message)
            return found[key]
        case Call("lambda", (name, body)):
            return lambda value: evaluate(body, functions, {**(bound or {}), name: value})
        case Call("lambdaVariables", (name,)):
            return (bound or {})[name]
        case Call("if", (condition, then, otherwise)):
            chosen = then if evaluate(condition, functions, bound) else otherwise
            return evaluate(chosen, functions, bound)
        case Call(name, arguments):
            if name not in functions:
                message = f"there is no function `{name}`"
                raise BadExpressionError(message)
            return functions[name](*(evaluate(item, functions, bound) for item in arguments))
        case _:
            return tree
