"""The lines of the bench are an interface: others read them."""

import json

import pytest

from tests.bench.report import Measure, find_quantile, write_line


def test_a_line_has_the_agreed_fields_in_order() -> None:
    measure = Measure(
        "log_ingest",
        612_345.6,
        "lines/s",
        ">= 2x the baseline",
        met=True,
        baseline=210_000.0,
        ratio=2.91593,
    )

    line = json.loads(write_line(measure))

    assert list(line) == ["measure", "value", "unit", "baseline", "ratio", "goal", "met"]
    assert line["measure"] == "log_ingest"
    assert (line["value"], line["baseline"], line["ratio"]) == (612_300.0, 210_000.0, 2.916)
    assert line["met"] is True


def test_a_missing_baseline_is_null_and_the_detail_says_why() -> None:
    measure = Measure(
        "workflow_rate_sqlite",
        200.0,
        "workflows/s",
        ">= 150",
        met=False,
        detail={"baseline_missing": "not installed"},
    )

    line = json.loads(write_line(measure))

    assert line["baseline"] is None
    assert line["ratio"] is None
    assert line["detail"] == {"baseline_missing": "not installed"}


def test_a_line_is_one_line() -> None:
    measure = Measure("m", 1.0, "ms", "none", met=True, detail={"text": "two\nlines"})

    assert "\n" not in write_line(measure)


@pytest.mark.parametrize(("part", "expected"), [(0.5, 51.0), (0.99, 100.0), (0.0, 1.0)])
def test_a_quantile_is_one_of_the_values(part: float, expected: float) -> None:
    values = [float(number) for number in range(100, 0, -1)]

    assert find_quantile(values, part) == expected
