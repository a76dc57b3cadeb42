from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exclave.runner.kube.api.yaml_reader import (
    MAX_TEXT,
    YamlRefused,
    read_document,
    read_documents,
)
from exclave.runner.kube.api.yaml_writer import write_documents


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("y", True), ("No", False), ("on", True), ("~", None), ("", None), ("Null", None),
        ("12:30", "12:30"), ("2026-11-18", "2026-11-18"), ("=", "="), ("yEs", "yEs"),
        ("0x1F", 31), ("0o17", 15), ("017", 15), ("08", 8), ("-0b11", -3), ("1_000", 1000),
        ("+.5", 0.5), ("1e3", 1000), ("12e03", 12000), ("1.5e-3", 0.0015), ("1.", 1),
        ("18446744073709551615", 18446744073709551615), ("-9223372036854775808", -(2**63)),
        ("1e400", "1e400"), ("1.2.3", "1.2.3"), ("0x", "0x"), ("+", "+"), (".", "."),
        ("'y'", "y"), ('"0x1F"', "0x1F"), ("!!str 3", "3"), ("! 4", "4"), ("!!int '3'", 3),
        ("!!float 3", 3), ("!!binary aGk=", "hi"), ("!custom 3", "3"),
    ],
)  # fmt: skip
def test_a_scalar_means_what_it_means_to_go(text: str, value: object) -> None:
    read = read_document(f"k: {text}\n")

    assert isinstance(read, dict)
    assert read["k"] == value
    assert type(read["k"]) is type(value)


def test_documents_have_their_numbers_and_lines() -> None:
    documents = read_documents("# a comment\n---\na: 1\n---\n---\n# nothing\n---\nb: 2\n")

    assert [(one.number, one.line, one.value) for one in documents] == [
        (1, 3, {"a": 1}),
        (4, 8, {"b": 2}),
    ]


def test_aliases_are_copies() -> None:
    value = read_document("a: &x {m: [1]}\nb: *x\n")
    assert isinstance(value, dict)
    a, b = value["a"], value["b"]
    assert isinstance(a, dict)

    a["m"] = []

    assert b == {"m": [1]}


def test_merged_keys_never_win_over_own_ones() -> None:
    value = read_document(
        "base: &base {a: 1, b: 2}\nother: &other {b: 3, c: 4}\nx:\n  <<: [*base, *other]\n  a: 9\n"
    )

    assert isinstance(value, dict)
    assert value["x"] == {"a": 9, "b": 2, "c": 4}


def test_a_quoted_merge_key_is_an_ordinary_key() -> None:
    assert read_document("'<<': 1\n") == {"<<": 1}


def test_keys_become_texts() -> None:
    assert read_document("y: 1\n2: 3\n1.5: 4\n") == {"true": 1, "2": 3, "1.5": 4}


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("a: 1\nb: 2\na: 3\n", 3, "already in line 1"),
        ("a: 1\n'a': 3\n", 2, "already in line 1"),
        ("a: .inf\n", 1, "JSON cannot express"),
        ("a: !!int x\n", 1, "!!int"),
        ("a: !!binary '%'\n", 1, "base64"),
        ("a: [1\n", 2, "expected"),
        ("? {a: b}\n: 1\n", 1, "a key has to be"),
        ("~: 1\n", 1, "a key has to be"),
        ("a: *b\n", 1, "no anchor"),
        ("<<: 3\n", 1, "needs a mapping"),
        ("a: " + "[" * 2000, 1, "deeper than 100"),
        ("a: \x00", None, "character"),
    ],
)  # fmt: skip
def test_a_flaw_is_refused_with_its_line(text: str, line: int | None, words: str) -> None:
    with pytest.raises(YamlRefused) as refused:
        read_documents(text)

    assert refused.value.line == line
    assert words in refused.value.message


def test_aliases_cannot_make_a_small_text_large() -> None:
    levels = [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    text = "\n".join(["a0: &a0 [x, x, x, x]", *levels])

    with pytest.raises(YamlRefused, match="aliases written out"):
        read_documents(text)


def test_an_anchor_cannot_hold_itself() -> None:
    with pytest.raises(YamlRefused, match="no anchor"):
        read_documents("a: &x [*x]\n")


def test_a_text_has_a_largest_size() -> None:
    with pytest.raises(YamlRefused, match="4 MiB"):
        read_documents("a: " + "x" * MAX_TEXT)


texts = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=20)
values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | texts
    | st.floats(allow_nan=False, allow_infinity=False).filter(lambda number: not number.is_integer())
    | st.sampled_from(["y", "1e3", "0x1", "~", "12:30", "=", "<<", "a\nb\n", " a\n", "\ta: b", "- x", "|", "0o7", ".inf"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@given(values)
def test_what_is_written_is_read_again(value: Any) -> None:
    assert read_document(write_documents([{"k": value}])) == {"k": value}


@given(st.text(max_size=60))
def test_no_text_ends_in_another_error(text: str) -> None:
    with suppress(YamlRefused):
        read_documents(text)
