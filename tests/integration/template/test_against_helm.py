"""The same templates and values through our engine and through Go's, byte for byte."""

import json
from pathlib import Path

import pytest

from exclave.template import TemplateProblem, parse, render
from tests.integration.template import helm
from tests.integration.template.generator import VALUES, Case, make_cases

SEED = 4
CASES = 3_600
REFUSED = 100
VECTORS = Path(__file__).parents[2] / "unit" / "template" / "vectors.json"

OURS_ONLY = (
    "more than",
    "larger than",
    "now is not available",
    "nests deeper",
    "does not fit into 64",
)
"""Errors by limits and by what we leave out: Go goes on there."""

HELM_ONLY = (
    "fromJson",
    "template ",
    "block ",
    "define ",
    "call nil",
    "range 3",
    "range $i, $j := 3",
    "range $i :=",
)
"""Helm replaces fromJson; names of parts would clash; ranges over numbers need a newer Go than some helms."""


def ours(case: Case) -> str | TemplateProblem:
    try:
        return render(parse(case.text), VALUES)
    except TemplateProblem as problem:
        return problem


def test_generated_templates_render_as_in_go(tmp_path: Path) -> None:
    cases = make_cases(SEED, CASES)
    results = {case.number: ours(case) for case in cases}
    good = [case for case in cases if isinstance(results[case.number], str)]

    theirs = render_without_number_ranges(tmp_path, good)

    wrong = [
        (case.text, results[case.number], theirs[case.number])
        for case in good
        if theirs[case.number].decode(errors="replace") != results[case.number]
    ]
    assert wrong == []
    assert len(theirs) == len(good) >= 2_000


def render_without_number_ranges(folder: Path, cases: list[Case]) -> dict[int, bytes]:
    """Leave out the few templates that go through a number: that needs Go 1.24, helm has 1.23."""
    for _ in range(10):
        try:
            return helm.render_all(folder, cases, VALUES)
        except helm.HelmFailed as failed:
            if "range can't iterate over" not in str(failed):
                raise
            cases[:] = [case for case in cases if case.number != failed.number]
    raise AssertionError


def test_generated_templates_that_we_refuse_are_refused_by_go(tmp_path: Path) -> None:
    refused = [
        case
        for case in make_cases(SEED + 1, 1_000, wrong=0.2)
        if isinstance(problem := ours(case), TemplateProblem)
        and not any(word in problem.message for word in OURS_ONLY)
    ]

    accepted = [case.text for case in refused[:REFUSED] if not helm.refuses(tmp_path, case, VALUES)]

    assert accepted == []
    assert len(refused) >= REFUSED


def test_the_hand_written_vectors_hold_in_go(tmp_path: Path) -> None:
    vectors = [vector for vector in json.loads(VECTORS.read_text()) if "want" in vector]
    kept = [
        vector for vector in vectors if not any(word in vector["template"] for word in HELM_ONLY)
    ]
    cases = [Case(number, "", vector["template"]) for number, vector in enumerate(kept)]

    theirs = helm.render_all(tmp_path, cases, VALUES)

    wrong = [
        (vector["template"], vector["want"], theirs[number])
        for number, vector in enumerate(kept)
        if theirs[number].decode(errors="replace") != vector["want"]
    ]
    assert wrong == []


@pytest.mark.parametrize("text", ["{{.Values}", "{{if}}", '{{printf "%d"', "{{end}}"])
def test_broken_syntax_is_refused_by_both(tmp_path: Path, text: str) -> None:
    case = Case(1, "", text)

    assert isinstance(ours(case), TemplateProblem)
    assert helm.refuses(tmp_path, case, VALUES)
