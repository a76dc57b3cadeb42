"""What each piece of the language gives; the expected texts were checked with Go's own engine."""

import json
from pathlib import Path
from typing import Any

import pytest

from exclave.template import TemplateProblem, parse, render
from exclave.template.functions import FUNCTIONS
from exclave.template.functions.refused import REASONS
from exclave.template.names import COUNTS, NAMES
from tests.integration.template.generator import VALUES

VECTORS: list[dict[str, Any]] = json.loads((Path(__file__).parent / "vectors.json").read_text())
GOOD = [vector for vector in VECTORS if "want" in vector]
BAD = [vector for vector in VECTORS if "want" not in vector]


@pytest.mark.parametrize("vector", GOOD, ids=lambda vector: str(vector["template"])[:60])
def test_a_template_renders_as_in_go(vector: dict[str, str]) -> None:
    assert render(parse(vector["template"]), VALUES) == vector["want"]


@pytest.mark.parametrize("vector", BAD, ids=lambda vector: str(vector["template"])[:60])
def test_a_template_is_refused_as_in_go(vector: dict[str, str]) -> None:
    with pytest.raises(TemplateProblem) as caught:
        render(parse(vector["template"], name="x.tpl"), VALUES)

    assert caught.value.message
    assert caught.value.file == "x.tpl"


def test_the_parser_knows_every_function() -> None:
    assert set(FUNCTIONS) == NAMES
    assert {
        name: (len(each.params), each.rest is not None) for name, each in FUNCTIONS.items()
    } == COUNTS


def test_every_function_has_a_vector_or_a_reason() -> None:
    text = " ".join(vector["template"] for vector in VECTORS)
    words = set(text.translate({ord(char): " " for char in '{}()|.$"-'}).split())
    time_only = {"now", "ago"}

    silent = sorted(set(FUNCTIONS) - words - set(REASONS) - time_only)

    assert silent == []


@pytest.mark.parametrize("name", sorted(REASONS))
def test_a_refused_function_says_why(name: str) -> None:
    with pytest.raises(TemplateProblem) as caught:
        render(parse(f'{{{{{name} "x"}}}}'), {})

    assert f"{name} is not available: it {REASONS[name]}" in caught.value.message
    assert caught.value.advice
