"""Loops whose rounds may match nothing find what Go finds, groups included.

`loops.json` holds what `FindAllStringSubmatchIndex` of Go 1.26 returned for each pattern and text:
the start and the end of each match and of its groups, -1 for a group without one.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from exclave.template.limits import Budget, Limits
from exclave.template.regex.machine import compile_pattern
from exclave.template.regex.program import MOST_INSTRUCTIONS
from exclave.template.regex.tree import BadPattern

VECTORS: list[dict[str, Any]] = json.loads((Path(__file__).parent / "loops.json").read_text())


def find_all(pattern: str, text: str) -> list[list[int]]:
    budget = Budget(Limits())
    found = compile_pattern(pattern, budget).find_all(text, -1, budget)
    return [list(slots) for slots in found]


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: f"{v['pattern']} on {v['text']}")
def test_a_loop_matches_what_go_matches(vector: dict[str, Any]) -> None:
    assert find_all(vector["pattern"], vector["text"]) == vector["matches"]


def test_an_empty_alternative_that_comes_first_wins_in_a_loop() -> None:
    assert find_all("(|a)*", "aaa")[0][:2] == [0, 0]
    assert find_all("(a|)*", "aaa")[0][:2] == [0, 3]


@pytest.mark.parametrize("pattern", ["(?:){1000}", "(?:){2,}", "(?:){1,1000}", "((?:)*)*", "(|)+"])
def test_repeating_nothing_ends(pattern: str) -> None:
    assert find_all(pattern, "")[0][:2] == [0, 0]


def test_a_pattern_that_multiplies_its_parts_is_too_large() -> None:
    with pytest.raises(BadPattern, match="too large"):
        find_all(f"(a{{100}}){{{MOST_INSTRUCTIONS // 100}}}", "a")
