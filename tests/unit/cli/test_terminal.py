import io
import json

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exclave.base.printable import dump_json, escape_controls, escape_line
from exclave.cli import terminal
from exclave.cli.terminal import clean, clean_line, indent, join, keep_colours, style

EVIL = "\x1b]0;PWNED\x07\x9b2J\u202e\x7f\r\u2028\ud800"
SHOWN = "\\x1b]0;PWNED\\x07\\x9b2J\\u202e\\x7f\\r\\u2028\\ud800"


def is_harmless(text: str) -> bool:
    return all(each.isprintable() or each in "\n\t" for each in text)


def test_controls_are_shown_and_ordinary_text_stays() -> None:
    assert escape_controls(EVIL) == SHOWN
    assert escape_controls("grün\t日本\n✓ [red]") == "grün\t日本\n✓ [red]"
    assert escape_line("a\tb\nc") == "a\\tb\\nc"


@given(st.text(st.characters(exclude_categories=())))
def test_whatever_the_text_only_printable_characters_are_left(text: str) -> None:
    assert is_harmless(escape_controls(text))
    assert escape_line(text).isprintable()


@given(st.recursive(st.text(), lambda inner: st.dictionaries(st.text(), inner, max_size=3)))
def test_json_means_the_same_and_holds_no_control_character(value: object) -> None:
    text = dump_json(value)

    assert json.loads(text) == value
    assert text.isprintable()


def test_json_of_a_lone_surrogate_can_be_written_to_any_stream() -> None:
    assert dump_json({"a": "\ud800\U000e0041"}) == '{"a": "\\ud800\\udb40\\udc41"}'


def test_our_own_styles_survive_and_those_of_others_do_not() -> None:
    ours = style("\x1b[31mred", "green")

    assert ours == "\x1b[32m\\x1b[31mred\x1b[0m"
    assert clean(ours) == ours
    assert style("plain", "green", on=False) == "plain"


@pytest.mark.parametrize(
    "made",
    [
        style("a", "red") + EVIL,
        EVIL + style("a", "red"),
        join([style("a", "red"), EVIL], EVIL),
        indent(style("a", "red") + "\n" + EVIL, EVIL),
        clean_line(EVIL) + style("a", "red"),
        style(EVIL, "red"),
    ],
)
def test_what_is_put_together_is_cleaned_piece_by_piece(made: str) -> None:
    assert "\x1b[31m" in made
    assert is_harmless(click.unstyle(made))
    assert isinstance(made, terminal.Styled)


def test_a_style_that_went_through_an_f_string_is_shown_and_not_obeyed() -> None:
    assert clean(f"{style('a', 'red')}") == "\\x1b[31ma\\x1b[0m"


@given(st.text(st.sampled_from("\x1b\x9b\x07[]0;13mJ \\a\u202e\t")))
def test_of_a_log_only_colours_are_left(text: str) -> None:
    assert is_harmless(click.unstyle(keep_colours(text, colour=True)))
    assert is_harmless(keep_colours(text, colour=False))


def test_a_prompt_is_cleaned(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def ask(prompt: str) -> str:
        asked.append(prompt)
        return "secret"

    monkeypatch.setattr("sys.stdin", io.StringIO("yes\n"))
    monkeypatch.setattr("getpass.getpass", ask)

    assert terminal.ask(f"Remove {EVIL}?")
    assert terminal.ask_secret(f"{EVIL}\nToken") == "secret"

    assert capsys.readouterr().err == f"Remove {SHOWN}? [y/N]: "
    assert asked == [f"{SHOWN}\\nToken: "]
