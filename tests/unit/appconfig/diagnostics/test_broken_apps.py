"""One broken app per diagnostic code, with what a person sees.

`python -m tests.unit.appconfig.directories` writes the expected texts again.
"""

from pathlib import Path

import pytest

from exclave.appconfig.diagnostics.codes import Code
from tests.unit.appconfig.directories import BROKEN, find, read_broken, show_broken


def test_every_code_has_a_broken_app() -> None:
    assert {file.stem for file in BROKEN.glob("*.toml")} == {str(code) for code in Code}


@pytest.mark.parametrize("code", [str(code) for code in Code])
def test_a_broken_app_is_told_about_in_these_words(code: str) -> None:
    expected = (BROKEN / f"{code}.txt").read_text()

    assert show_broken(code) == expected


@pytest.mark.parametrize("code", [str(code) for code in Code])
def test_a_finding_says_where_and_what_to_do(code: str, tmp_path: Path) -> None:
    found = find(read_broken(code, tmp_path), code)

    assert found
    assert all(each.line >= 1 and each.column >= 1 and each.hint for each in found)
