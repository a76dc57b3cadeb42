import tomllib
from collections.abc import Iterator

import pytest

from exclave.appconfig.diagnostics.positions import KeyPath, index_keys
from exclave.appconfig.diagnostics.sources import Position, Source
from tests.unit.appconfig.directories import APPS

TRICKY = '''\
# a comment with [brackets] = and "quotes"
a.b.c = 1 # after
"quoted key" = 'literal \\ text'
'x.y'.z = """
multi "quoted" \\
    line
""" # end
list = [
  1, # one
  "two, ]", { k = [true, { deep = 1979-05-27 07:32:00 }] },
]
empty = {}
ends = """a"""""

[table . "sub table"]
key = 1e3

[[many]]
name = "first"
[[many.inner]]
x = 1
[[many.inner]]
x = 2
[many.other]
y = \'\'\'it\'s\'\'\'
[[many]]
name = "second"
inner = [{ x = 3 }]
'''

FILES = sorted(file for file in APPS.rglob("*.toml") if "broken" not in file.parts)


def paths(value: object, at: KeyPath = ()) -> Iterator[KeyPath]:
    if at:
        yield at
    if isinstance(value, dict):
        for key, each in value.items():
            yield from paths(each, (*at, key))
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from paths(each, (*at, index))


@pytest.mark.parametrize("text", [TRICKY, *(file.read_text() for file in FILES)])
def test_every_key_of_a_valid_text_is_found_where_it_stands(text: str) -> None:
    index = index_keys(text)

    for path in paths(tomllib.loads(text)):
        assert path in index
        rest, key = text[index[path].key :], path[-1]
        assert isinstance(key, int) or rest[:1] == "[" or key in rest.split("\n", 1)[0], path


def test_lines_and_columns_count_from_one() -> None:
    source = Source("x.toml", TRICKY)

    assert source.locate_key(("a", "b", "c")) == Position(2, 5)
    assert source.locate_value(("a", "b", "c")) == Position(2, 9)
    assert source.locate_key(("many", 1, "name")) == Position(27, 1)
    assert source.locate_key(("many", 0, "inner", 1, "x")) == Position(23, 1)


def test_a_key_that_is_not_there_is_where_its_table_is() -> None:
    source = Source("x.toml", TRICKY)

    assert source.locate_key(("many", 1, "missing")) == Position(26, 1)
    assert source.locate_key(("missing",)) == Position(1, 1)


@pytest.mark.parametrize(
    ("written", "content", "inner", "expected"),
    [
        ('k = "ab{{x"', "ab{{x", Position(1, 3), Position(1, 8)),
        ("k = 'ab{{x'", "ab{{x", Position(1, 3), Position(1, 8)),
        ('k = """\nab\n  {{x"""', "ab\n  {{x", Position(2, 3), Position(3, 3)),
        ('k = """ab\n{{x"""', "ab\n{{x", Position(2, 1), Position(2, 1)),
        (r'k = "\u00e4\n\"{{x"', 'ä\n"{{x', Position(2, 2), Position(1, 16)),
        ('k = """a\\\n   {{x"""', "a{{x", Position(1, 2), Position(2, 4)),
    ],
)
def test_a_place_inside_a_text_is_found_through_its_escapes(
    written: str, content: str, inner: Position, expected: Position
) -> None:
    assert tomllib.loads(written)["k"] == content

    assert Source("x.toml", written).locate_inside(("k",), content, inner) == expected


def test_a_text_that_is_not_toml_gives_half_an_index() -> None:
    assert set(index_keys("a = 1\nb = \n= =")) == {("a",), ("b",)}
