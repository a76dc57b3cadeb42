"""Names and docstrings that a newcomer understands: no vague verbs in front."""

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
NAMED_BY_OTHERS = {"do_GET", "do_POST"}
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
