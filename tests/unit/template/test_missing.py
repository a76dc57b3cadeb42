"""Missing keys and nulls, checked with Go's own engine and its option missingkey=error."""

import json
from pathlib import Path
from typing import Any

import pytest

from exclave.template import TemplateProblem, parse, render

VECTORS: list[dict[str, Any]] = json.loads((Path(__file__).parent / "missing.json").read_text())
VALUES: dict[str, object] = {
    "nuon": {"a": {"b": 1.0}, "n": None, "l": [{"x": 1.0}, None], "s": "t"}
}


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: str(vector["template"])[:60])
def test_what_is_missing_behaves_as_in_go(vector: dict[str, str]) -> None:
    if "want" in vector:
        assert render(parse(vector["template"]), VALUES) == vector["want"]
    else:
        with pytest.raises(TemplateProblem):
            render(parse(vector["template"]), VALUES)
