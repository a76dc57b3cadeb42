"""Files, addresses and parameters of Stacks."""

import hashlib

import pytest

from exclave.domain.stacks import StackInput, StackSecret, StackTerms
from exclave.stacks.base import (
    Parameter,
    RenderedStack,
    StackAddress,
    StackFile,
    list_declared_parameters,
)


def test_a_file_is_found_by_its_name_and_known_by_its_bytes() -> None:
    file = StackFile("a.txt", "text/plain", "é")
    stack = RenderedStack((file,))

    assert stack.find_file("a.txt") is file
    assert stack.find_file("b.txt") is None
    assert (file.data, file.sha256) == (b"\xc3\xa9", hashlib.sha256(b"\xc3\xa9").hexdigest())


@pytest.mark.parametrize(
    "name",
    ["", "/a", "a/", "a//b", "../a", "a/../b", "a/.", ".hidden", "a/.b", "a\\b", "a b", "a\n", "é"],
)
def test_a_name_that_could_lead_out_of_a_folder_is_no_name(name: str) -> None:
    with pytest.raises(ValueError, match="cannot be the name of a file"):
        StackFile(name, "text/plain", "")


def test_files_may_lie_in_folders() -> None:
    names = ("main.json", "terraform/main.tf.json", "terraform/modules/x/a-b_1.tf")
    stack = RenderedStack(tuple(StackFile(name, "text/plain", name) for name in names))

    for name in names:
        file = stack.find_file(name)
        assert file is not None
        assert file.content == name
    assert stack.find_file("terraform") is None


@pytest.mark.parametrize("names", [("a", "a"), ("a", "a/b"), ("a/b/c", "a/b")])
def test_two_files_cannot_take_the_same_place(names: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="two files of a Stack"):
        RenderedStack(tuple(StackFile(name, "text/plain", "") for name in names))


def test_an_address_has_one_slash_before_the_path() -> None:
    for url in ("https://r.test", "https://r.test/"):
        address = StackAddress(url, "xcs_1").build_url("a.txt")

        assert address == "https://r.test/v1/stacks/xcs_1/a.txt"


def test_the_customers_inputs_and_secrets_are_parameters() -> None:
    terms = StackTerms(
        install_id="ins_1",
        install="acme",
        app="shop",
        inputs=(
            StackInput("zone", description="Where", default="a", required=True),
            StackInput("pin", default="1234", sensitive=True),
        ),
        secrets=(
            StackSecret("password", required=True),
            StackSecret("key", required=True, auto_generate=True),
        ),
    )

    assert list_declared_parameters(terms) == (
        Parameter("zone", "Where", default="a", required=True),
        Parameter("pin", sensitive=True),
        Parameter("password", required=True, sensitive=True),
        Parameter("key", sensitive=True),
    )
