"""What SECURITY.md says about stolen things is proved by tests that exist."""

import re

import pytest

from exclave.control.stacks.cloud_stacks import VIEW_DAYS
from exclave.domain.timings import Timings
from exclave.runner.cloud.aws import SESSION_S
from exclave.wire.registry import NewRegistryToken
from tests.unit.docs.pages import ROOT, Page

PAGE = Page(ROOT / "SECURITY.md")
HEADING = "What a stolen thing opens"
_TEST = re.compile(r"^(?:async )?def (test_\w+)\(", re.MULTILINE)
_NAMED = re.compile(r"`(test_\w+)`")


def read_rows() -> dict[str, list[str]]:
    """Return the other cells of each row by what was stolen."""
    lines = [line for line in PAGE.section(HEADING).splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]
    return {row[0]: row[1:] for row in cells}


def list_tests() -> set[str]:
    files = (ROOT / "tests").rglob("test_*.py")
    return {name for file in files for name in _TEST.findall(file.read_text())}


def find_row(start: str) -> list[str]:
    (row,) = [cells for thing, cells in read_rows().items() if thing.startswith(start)]
    return row


def test_every_row_names_tests_and_all_of_them_exist() -> None:
    rows = read_rows()
    known = list_tests()

    for thing, (*_, proof) in rows.items():
        named = _NAMED.findall(proof)
        assert named, f"{thing}: nothing proves it"
        assert set(named) <= known, thing
    assert len(rows) > 15


def test_every_test_that_the_page_names_exists() -> None:
    assert set(_NAMED.findall(PAGE.text)) <= list_tests()


@pytest.mark.parametrize(
    ("thing", "expected"),
    [
        ("link to the page", f"{VIEW_DAYS} days"),
        ("enrolment token", f"{Timings().enrolment_s / 60:.0f} minutes"),
        ("runner's access token", f"{Timings().access_token_s / 60:.0f} minutes"),
        ("signed job", f"{Timings().envelope_s / 60:.0f} minutes"),
        ("credentials of a job in AWS", f"{SESSION_S // 60} minutes"),
        ("token for the registry", f"{NewRegistryToken(repository='*').minutes} minutes"),
    ],
)
def test_what_ends_by_itself_ends_when_the_page_says(thing: str, expected: str) -> None:
    assert expected in find_row(thing)[1]
