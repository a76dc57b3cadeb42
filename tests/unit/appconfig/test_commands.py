"""Commands as words: cut where the author cut them, whatever the values hold."""

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exclave.appconfig.commands import BadCommand, mark_command
from exclave.appconfig.templates import render_text

VALUES = {"x": "it's a --b", "empty": "", "list": ["a b", "c"]}


def read(text: str, values: object = VALUES) -> list[str]:
    marked = mark_command(text, "token")
    done = render_text(marked.text, {"nuon": values})
    assert isinstance(done, str), done
    return marked.read_words(done)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("echo {{ .nuon.x }} b", ["echo", "it's a --b", "b"]),
        ("echo --to={{.nuon.x}}", ["echo", "--to=it's a --b"]),
        ("echo '{{ .nuon.x }}'\"{{ .nuon.x }}\"", ["echo", "it's a --bit's a --b"]),
        ('echo {{ .nuon.empty | default "a b" }}', ["echo", "a b"]),
        ('echo "{{ .nuon.empty | default "a \\" b" }}" c', ["echo", 'a " b', "c"]),
        ("echo {{ .nuon.empty }} c", ["echo", "c"]),
        ("echo '{{ .nuon.empty }}' c", ["echo", "", "c"]),
        ("run {{ if .nuon.x }}--a b{{ end }} c", ["run", "--a", "b", "c"]),
        ("run {{ if .nuon.empty }}--a b{{ end }} c", ["run", "c"]),
        ("run{{ range .nuon.list }} --add {{ . }}{{ end }}", ["run", "--add", "a b", "--add", "c"]),
        ("echo a {{- .nuon.x -}} b", ["echo", "ait's a --bb"]),
        ("echo 'a ' {{- .nuon.x }}", ["echo", "a it's a --b"]),
        ("echo {{/* it's a note */}} {{ .nuon.x }}", ["echo", "it's a --b"]),
        ("echo {'{'{{ .nuon.x }}", ["echo", "{{it's a --b"]),
        ("docker ps --format '{{ .Names }}'", ["docker", "ps", "--format", "{{ .Names }}"]),
    ],
)
def test_a_value_stays_in_the_word_that_it_stands_in(text: str, words: list[str]) -> None:
    assert read(text) == words


@pytest.mark.parametrize("text", ["it's", 'a "b', "a\\", "'{{ .nuon.x }}", "\\{{ .nuon.x }}"])
def test_a_command_that_never_ends_is_refused_with_a_hint(text: str) -> None:
    with pytest.raises(BadCommand) as caught:
        mark_command(text, "token")

    assert caught.value.hint


@given(st.text("ab \t\n\"'\\{}-", max_size=30))
def test_a_command_without_templates_is_cut_as_a_shell_does(text: str) -> None:
    try:
        expected = shlex.split(text)
    except ValueError:
        with pytest.raises(BadCommand):
            mark_command(text, "token")
    else:
        marked = mark_command(text, "token")
        assert marked.read_words(marked.text) == expected


@given(st.text(max_size=50))
def test_no_value_changes_how_many_words_there_are(value: str) -> None:
    assert read("a '{{ .nuon.v }}' b", {"v": value}) == ["a", value, "b"]
