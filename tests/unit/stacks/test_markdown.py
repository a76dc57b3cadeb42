"""Texts of others in Markdown, and the page of instructions."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exclave.stacks.base import Guide, Link, Step
from exclave.stacks.guide_text import write_instructions
from exclave.stacks.markdown import write_block, write_code, write_list, write_table, write_text
from tests.unit.stacks.models_kit import APPS, build_app


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("plain", "plain"),
        ("a\n\n# b", "a \\# b"),
        ("[a](b) <i>", "\\[a\\](b) \\<i\\>"),
        ("`x` | *y* _z_", "\\`x\\` \\| \\*y\\* \\_z\\_"),
    ],
)
def test_markup_in_a_text_is_escaped(text: str, escaped: str) -> None:
    assert write_text(text) == escaped


@pytest.mark.parametrize(
    ("text", "code"),
    [("a b", "`a b`"), ("a`b", "``a`b``"), ("`a", "`` `a ``"), ("", "` `"), ("a\nb", "`a b`")],
)
def test_code_ends_where_it_should(text: str, code: str) -> None:
    assert write_code(text) == code


@given(st.lists(st.text(alphabet="a`\\ |", max_size=8), min_size=1, max_size=3))
def test_a_block_holds_its_lines(lines: list[str]) -> None:
    head, *body, tail, end = write_block(lines).split("\n")

    assert (head, tail, end) == (f"{tail}sh", head.removesuffix("sh"), "")
    assert body == lines
    assert not any(tail in line for line in lines)


@given(st.text())
def test_a_text_stays_in_its_line(text: str) -> None:
    assert re.search(r"[\r\n]", write_text(text) + write_code(text)) is None


def test_tables_and_lists() -> None:
    assert write_table(("a", "b"), [["1", "2"]]) == "| a | b |\n| --- | --- |\n| 1 | 2 |\n"
    assert write_table(("a",), [["`x|y` \\| z"]]).splitlines()[2] == "| `x\\|y` \\| z |"
    assert write_list(["a", "b"]) == "- a\n- b\n"


GUIDE = Guide(
    summary="Apply it.",
    steps=(
        Step("Create", "Do this.", ("aws a", "aws b"), (Link("Console", "https://x.example/<y>"),)),
        Step("Stop"),
    ),
    warning="Over http.",
)


def test_instructions_hold_every_step() -> None:
    model = build_app(APPS / "acme-aws").model

    page = write_instructions(model, GUIDE)

    assert "Preview" not in page
    assert "> **Careful:** Over http." in page
    assert (
        "## Create\n\nDo this.\n\n- [Console](<https://x.example/<y%3E>)\n\n```sh\naws a\naws b\n```\n"
        in page
    )
    assert page.endswith("## Stop\n")


def test_a_preview_says_that_it_starts_no_runner() -> None:
    model = build_app(APPS / "acme-aws").model

    assert "> **Preview.**" in write_instructions(model, GUIDE, preview=True)
