"""Whatever the text and the values, only a TemplateProblem comes out, and soon."""

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from exclave.template import Limits, TemplateProblem, find_references, parse, render
from exclave.template.functions import FUNCTIONS
from tests.integration.template.generator import VALUES

LIMITS = Limits(steps=5_000)
CALM = settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))

PIECES = [
    "{{", "}}", "{{-", "-}}", " ", " ", "\n", "(", ")", "|", ":=", "=", ",", ".", "$", "$x", ".nuon", ".nuon.m", ".l",
    "if", "else", "end", "range", "with", "define", "block", "template", "break", "continue", "nil", "true", '"a"', '"\\x"',
    "`raw`", "'c'", "1", "-2.5", "0x1F", "1e400", "99999999999999999999", "/*", "*/", "text", '"', "`", "\\", "é", "\x00",
    *FUNCTIONS,
]  # fmt: skip

DATA: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4)
    ),
    max_leaves=20,
)


def attempt(text: str, values: dict[str, Any]) -> None:
    try:
        template = parse(text)
        find_references(template)
        render(template, values, LIMITS).encode()
    except TemplateProblem as problem:
        found = problem
    else:
        return
    assert found.message
    assert 1 <= found.line <= text.count("\n") + 1


@CALM
@given(st.text(alphabet=st.characters(), max_size=60).map(lambda text: "{{" + text + "}}"))
def test_any_text_in_an_action_is_rendered_or_refused(text: str) -> None:
    attempt(text, VALUES)


@CALM
@given(st.lists(st.sampled_from(PIECES), max_size=25).map("".join))
def test_any_heap_of_pieces_is_rendered_or_refused(text: str) -> None:
    attempt(text, VALUES)


@CALM
@given(
    st.sampled_from(sorted(FUNCTIONS)),
    st.lists(
        st.sampled_from(
            [
                ".a",
                ".b",
                "(list .a .b)",
                '"x"',
                "3",
                "-1",
                "nil",
                "0.5",
                '(dict "k" .a)',
                '""',
                '"(a*)*b"',
            ]
        ),
        max_size=4,
    ),
    DATA,
    DATA,
)
def test_any_function_answers_or_refuses_any_values(
    name: str, args: list[str], a: object, b: object
) -> None:
    attempt(f"{{{{{name} {' '.join(args)}}}}}", {"a": a, "b": b})


@CALM
@given(st.text(max_size=20), st.lists(DATA, max_size=3))
def test_any_format_is_answered_or_refused(pattern: str, args: list[object]) -> None:
    names = [f"arg{number}" for number in range(len(args))]
    call = " ".join(["printf", ".pattern", *(f".{name}" for name in names)])
    attempt("{{" + call + "}}", {"pattern": "%" + pattern, **dict(zip(names, args, strict=True))})


@CALM
@given(
    st.text(alphabet="ab(|)*+?{}[]^$.\\dwsbpLQE1,:-iP<>=!", max_size=20),
    st.text(alphabet="ab1 \n", max_size=30),
)
def test_any_pattern_is_answered_or_refused(pattern: str, text: str) -> None:
    values = {"p": pattern, "t": text}
    for call in (
        "regexMatch .p .t",
        "regexFindAll .p .t -1",
        'regexReplaceAll .p .t "<$0>"',
        "regexSplit .p .t -1",
    ):
        attempt("{{" + call + "}}", values)
