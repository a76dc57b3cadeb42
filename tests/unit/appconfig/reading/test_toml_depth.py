"""Keys that a parser would take long for are found by one look at the text."""

import tomllib

import pytest

from exclave.appconfig.reading.toml_depth import MOST_PARTS, find_long_key

LONG = ".".join("a" * (MOST_PARTS + 1))
FITS = ".".join("a" * MOST_PARTS)


@pytest.mark.parametrize(
    ("text", "at"),
    [
        (f"{LONG} = 1", 0),
        (f"x = 1\n[{LONG}]\n", 7),
        (f"x = 1\n[[ {LONG} ]]\n", 9),
        ("'a' . " * MOST_PARTS + '"b" = 1', 0),
        ("\t.\t".join(['"\\""'] * 40) + "= 1", 0),
        (f"x = {{ {LONG} = 1 }}", 6),
        (f'x = """\n""" \n{LONG} = 1', 13),
        (f"x = '''\n'''\n{LONG} = 1", 12),
        (f'x = "\\""\n{LONG} = 1', 9),
        (f"# it's\n{LONG} = 1", 7),
    ],
)
def test_a_key_with_too_many_parts_is_found(text: str, at: int) -> None:
    tomllib.loads(text)

    assert find_long_key(text) == at


@pytest.mark.parametrize(
    "text",
    [
        "",
        f"{FITS} = 1",
        f"# {LONG}\nx = 1",
        f'x = "{LONG}"',
        f"x = '{LONG}'",
        f'x = """\n{LONG} = 1\n"""',
        f"x = '''\n{LONG} = 1\n'''",
        "x = [" + "1.5, " * 100 + "]",
        "x = 1979-05-27T07:32:00.999999",
        "\n".join(f"a{number}.b = {number}" for number in range(100)),
    ],
)
def test_text_that_only_looks_like_a_long_key_is_none(text: str) -> None:
    tomllib.loads(text)

    assert find_long_key(text) is None


@pytest.mark.parametrize("text", ['x = "', 'x = """', "x = '''", "x = '", "x = \\", 'x = "\\'])
def test_what_is_not_toml_is_left_to_the_parser(text: str) -> None:
    assert find_long_key(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "a." * 500_000,
        '"' * 250_000,
        "'" * 250_000,
        'x = """' + '\\"""' * 250_000,
        'x = "' + '\\"' * 500_000,
        "x = '\n" * 150_000,
        '"" ' * 300_000,
        "\\" * 250_000,
    ],
)
def test_the_largest_hostile_files_are_looked_at_once(text: str) -> None:
    find_long_key(text)
