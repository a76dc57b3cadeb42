"""The page of the template language names every function as the code has it."""

from pathlib import Path

from exclave.template.functions import FUNCTIONS
from exclave.template.functions.refused import REASONS
from exclave.template.functions.signature import Function, Param

PAGE = Path(__file__).parents[4] / "docs" / "reference" / "templates.md"

WORDS = {
    Param.ANY: "any", Param.TEXT: "string", Param.INT: "int", Param.FLOAT: "float", Param.BOOL: "bool", Param.MAP: "map",
    Param.TIME: "time",
}  # fmt: skip


def write_row(function: Function) -> str:
    """Write a function as a row of the page: name, arguments, first sentence of its docstring."""
    words = [WORDS[param] for param in function.params]
    if function.rest is not None:
        words.append(f"{WORDS[function.rest]}…")
    says = (function.call.__doc__ or "").splitlines()[0]
    return f"| `{function.name}` | {' '.join(words)} | {says} |"


def test_every_function_is_on_the_page() -> None:
    page = PAGE.read_text()
    rows = [write_row(function) for name, function in FUNCTIONS.items() if name not in REASONS]

    assert [row for row in rows if row not in page] == []


def test_every_refused_function_is_on_the_page() -> None:
    page = PAGE.read_text()

    assert [
        name for name, reason in REASONS.items() if f"`{name}`" not in page or reason not in page
    ] == []
