"""Statements of two servers interleave on a real PostgreSQL: no order of them breaks a promise."""

import pytest

from tests.faults.interleaving.mutants import MUTANTS, Mutant
from tests.faults.interleaving.run import run_seeds
from tests.faults.interleaving.scenarios import SCENARIOS, renew_and_silence

_SEEDS_PER_TEST = 75
_TESTS = 4
_SEARCHED = 40
"""How many orders are tried where the first one no longer shows it."""


@pytest.mark.parametrize("part", range(_TESTS))
def test_no_order_of_statements_breaks_a_promise(part: int) -> None:
    report = run_seeds(range(part * _SEEDS_PER_TEST, (part + 1) * _SEEDS_PER_TEST))

    assert not report.broken, report.broken[:5]
    assert len(report.counts) == len(SCENARIOS)


@pytest.mark.parametrize("mutant", MUTANTS, ids=[each.name for each in MUTANTS])
def test_a_missing_condition_is_noticed(mutant: Mutant) -> None:
    with mutant.alive():
        report = run_seeds(
            range(_SEARCHED), only=mutant.noticed_by, rewrite=mutant.rewrite, stop=True
        )

    assert report.broken


def test_a_seed_decides_who_goes_first() -> None:
    """Mostly: where transactions wait for each other's locks, PostgreSQL decides as well."""
    first, again = (run_seeds(range(10), only=renew_and_silence, keep=True) for _ in range(2))

    equal = [seed for seed in first.traces if first.traces[seed] == again.traces[seed]]
    assert len({tuple(trace) for trace in first.traces.values()}) > 1
    assert len(equal) > len(first.traces) // 2
