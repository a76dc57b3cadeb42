"""The example apps: nothing to criticise about them."""

from pathlib import Path

import pytest

from exclave.appconfig.read_app import read_app

EXAMPLES = sorted((Path(__file__).parents[3] / "examples").iterdir())


@pytest.mark.parametrize("folder", EXAMPLES, ids=lambda folder: folder.name)
def test_an_example_has_no_findings(folder: Path) -> None:
    reading = read_app(folder, strict=True)

    assert (reading.ok, list(reading.diagnostics)) == (True, [])
