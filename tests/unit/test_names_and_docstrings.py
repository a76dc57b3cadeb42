"""Names and docstrings that a newcomer understands: no vague verbs, no pronouns as variables."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("src/exclave", "tests/support")
VAGUE_NAME = re.compile(r"_*(tell|take|judge|do)(_|$)")
"""A name says what a function does: `read_`, `acquire_`, `format_` and so on."""
VAGUE_DOCSTRING = re.compile(r"(Tell|Say|Give)s?\b")
"""A docstring says what is returned or done: `Return …`, `Store …`."""
VAGUE_VARIABLES = {"each", "found", "one", "said", "told", "wish"}
"""A variable is a noun, named after what it holds: `install`, `step`, `reply` and so on."""
NAMED_BY_OTHERS = {"do_GET", "do_POST", "do_PUT"}
"""Methods of `http.server`."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def find_vague(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each vague name and docstring."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, Function) and _is_vague(node.name):
            yield node.lineno, node.name
        if isinstance(node, Function | ast.ClassDef | ast.Module):
            docstring = ast.get_docstring(node) or ""
            if VAGUE_DOCSTRING.match(docstring):
                yield getattr(node, "lineno", 1), docstring.partition("\n")[0]


def _is_vague(name: str) -> bool:
    return name not in NAMED_BY_OTHERS and VAGUE_NAME.match(name) is not None


def find_vague_variables(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of each variable or parameter that says nothing."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case (
                ast.Name(id=name, ctx=ast.Store())
                | ast.arg(arg=name)
                | ast.ExceptHandler(name=str(name))
                | ast.MatchAs(name=str(name))
                | ast.MatchStar(name=str(name))
            ) if name in VAGUE_VARIABLES:
                yield node.lineno, name
            case _:
                pass


@pytest.mark.parametrize("folder", FOLDERS)
def test_functions_and_docstrings_say_what_is_done(folder: str) -> None:
    vague = [
        f"{file.relative_to(ROOT)}:{line} {text}"
        for file in sorted((ROOT / folder).rglob("*.py"))
        for line, text in find_vague(file.read_text())
    ]

    assert vague == []


@pytest.mark.parametrize(
    "source",
    [
        "def tell_end(): ...",
        "async def _take(): ...",
        "def judge(): ...",
        "class A:\n    def _do(self): ...",
        'def read():\n    """Tell the size."""',
        'class A:\n    """Gives sizes."""',
        '"""Say what is there."""',
    ],
)
def test_the_rule_finds_what_it_should(source: str) -> None:
    assert len(list(find_vague(source))) == 1


@pytest.mark.parametrize(
    "source",
    [
        "def takeover(): ...",
        "def document(): ...",
        "class Handler:\n    def do_GET(self): ...",
        'def read():\n    """Telling names are kept."""',
    ],
)
def test_the_rule_leaves_other_words_alone(source: str) -> None:
    assert list(find_vague(source)) == []


def test_variables_are_named_after_what_they_hold() -> None:
    vague = [
        f"{file.relative_to(ROOT)}:{line} {name}"
        for file in sorted((ROOT / "src/exclave").rglob("*.py"))
        for line, name in find_vague_variables(file.read_text())
    ]

    assert vague == []


@pytest.mark.parametrize(
    "source",
    [
        "wish = 1",
        "told: int = 1",
        "def create(wish): ...",
        "def create(*, wish=None): ...",
        "for each in (): ...",
        "names = [one.name for one in ()]",
        "if found := read(): ...",
        "order = sorted((), key=lambda each: each)",
        "with open() as found: ...",
        "class Plan:\n    wish: int",
        "try: ...\nexcept OSError as told: ...",
        "match 1:\n    case int() as found: ...",
        "match ():\n    case [*found]: ...",
    ],
)
def test_the_rule_finds_a_vague_variable(source: str) -> None:
    assert len(list(find_vague_variables(source))) == 1


@pytest.mark.parametrize(
    "source", ["install = find(each)", "one()", "wishes = 1", "def found(): ...", "read(one=1)"]
)
def test_the_rule_leaves_other_variables_alone(source: str) -> None:
    assert list(find_vague_variables(source)) == []
