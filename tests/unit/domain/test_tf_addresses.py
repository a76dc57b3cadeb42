"""Addresses of resources as untrusted runners tell them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exclave.base.hcl import quote
from exclave.domain.tf_addresses import parse_address, read_address, read_name, write_import

ADDRESSES = [
    "aws_vpc.main", "aws_vpc.main[0]", 'aws_vpc.main["a"]', "data.aws_ami.x", "module.a.aws_vpc.b",
    'module.a["k"].module.b[3].data.x-y.z_1["a.b/c:d"]', 'a.b["\\"]\\n\\\\"]', 'a.b["$${x} %%{y}"]',
    'a.b[""]', 'a.b["é 日本"]', "ä.ö", "a.b_***", '***.b["***"]', 'a.b["\\u202e"]', "_a._b",
]  # fmt: skip
NONE = [
    "a", ".a.b", "a..b", "a.b.", "a.b[", "a.b[]", "a.b[x]", "a.b[-1]", "a.b[0][1]", "[0].a", 'a.b["x]',
    'a.b["x"y"]', 'a.b["\\x"]', 'a.b["\\u12"]', 'a.b["\\UFFFFFFFF"]', "a b.c", "a.b\n", "a.b\x1b[2J",
    "a.b }\nmodule", "a.b\u202e", "a.1", "1.a", "-a.b", "a.b[٣]", "a.b # x", "a.b[0]c", "a." + "b" * 2000,
    "apps/deployment/shop/web", "apps/Deployment/shop/", "a/B/c/d/e", "apps/Deployment/shop/w eb", "/Pod/x",
]  # fmt: skip


@pytest.mark.parametrize("address", ADDRESSES)
def test_an_address_stays_as_it_is(address: str) -> None:
    assert read_address(address) == address


@pytest.mark.parametrize("text", NONE)
def test_what_is_no_address_says_so_and_stays_so(text: str) -> None:
    read = read_address(text)

    assert parse_address(text) is None
    assert read.startswith("(unreadable address ")
    assert read.isprintable()
    assert read_address(read) == read
    assert write_import(text, "id") == write_import(read, "id") == ""


def test_two_ways_to_write_a_key_are_one_address() -> None:
    assert read_address('a.b["${x}\\u00e9"]') == read_address('a.b["$${x}é"]') == 'a.b["$${x}é"]'
    assert read_address('a.b["\u202e"]') == 'a.b["\\u202e"]'


def test_unreadable_addresses_stay_apart() -> None:
    first, second = (read_address("\x00" * 3000 + end) for end in "ab")

    assert first != second
    assert len(first) < 1000


@given(st.text(st.characters(exclude_categories=())))
def test_whatever_a_runner_tells_comes_out_printable_and_once(text: str) -> None:
    for read in (read_address, read_name):
        assert read(text).isprintable()
        assert read(read(text)) == read(text)


@given(st.lists(st.text(), min_size=1, max_size=3))
def test_any_key_survives(keys: list[str]) -> None:
    address = ".".join(f"a[{quote(key)}].b" for key in keys)

    assert read_address(address) == address or len(address) > 2000
    assert write_import(address, "x").count("\n") in {0, 4}


@pytest.mark.parametrize("name", ["a", "url", "a-b_1", "ä", "***"])
def test_names_of_outputs_are_taken(name: str) -> None:
    assert read_name(name) == name


@pytest.mark.parametrize("name", ["", "1", "a b", "a.b", "a\n", "\x1b[2J", "a" * 201])
def test_other_names_of_outputs_say_so(name: str) -> None:
    assert read_name(name).startswith("(unreadable name ")
