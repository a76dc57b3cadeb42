"""Without one of its guards the protocol breaks, and the simulation notices which promise did."""

from pathlib import Path

import pytest

from tests.faults import test_scenarios as scenarios
from tests.faults.sim import mutants
from tests.faults.sim.mutants import Mutant
from tests.faults.sim.run import run_seed

_SEARCHED = 60
"""How many seeds are tried where the pinned one no longer shows it."""

_CAUGHT = (
    (mutants.NO_FENCE, "I1", 0),
    (mutants.NO_STATE_CHECK, "I2", 0),
    (mutants.NO_GUARD_AT_ALL, "I2", 0),
    (mutants.NO_RESULT_DIGEST, "I6", 6),
    (mutants.NO_OUTBOX, "I6", 15),
    (mutants.NO_DEADMAN, "I4", 0),
    (mutants.NO_ORDER_OF_PROOF, "I4", 0),
    (mutants.OFFERS_CHANGES_AGAIN, "I6", 10),
    (mutants.NO_RECONCILE, "I4", 1),
    (mutants.NO_LEAVE, "I6", 3),
    (mutants.NO_LANES, "I4", 0),
    (mutants.NO_SWEEP, "I7", 6),
    (mutants.CANCEL_AT_ONCE, "I5", 0),
    (mutants.NO_START_GRACE, "I4", 0),
)


@pytest.mark.parametrize(
    ("mutant", "invariant", "pinned"), _CAUGHT, ids=[one.name for one, _, _ in _CAUGHT]
)
def test_a_missing_guard_is_noticed(mutant: Mutant, invariant: str, pinned: int) -> None:
    seeds = (pinned, *range(_SEARCHED))

    with mutant.alive():
        broken = next((found for seed in seeds if (found := run_seed(seed).broken)), ())

    assert any(one.startswith(invariant) for one in broken), broken[:5]


def test_a_poll_that_is_not_idempotent_makes_a_second_execution(tmp_path: Path) -> None:
    """No promise breaks by it, as nothing starts without leave: it costs only time."""
    with mutants.NO_NONCE.alive(), pytest.raises(AssertionError):
        scenarios.test_a_lost_poll_reply_gets_the_same_offer_again(tmp_path)


@pytest.mark.parametrize("mutant", [mutants.NO_FINAL_GUARD, mutants.NO_NONCE], ids=lambda m: m.name)
def test_a_guard_behind_another_guard_is_not_missed(mutant: Mutant) -> None:
    """A job ends by its one open execution, and that can end once: the second guard is spare.

    So is the nonce of a poll: an offer may always be withdrawn, as nothing begins without leave.
    They are kept against code to come. The same holds for the epoch that a runner sends along:
    an execution has one epoch for life, so only a runner that lies would send another.
    """
    with mutant.alive():
        broken = [found for seed in range(5) if (found := run_seed(seed).broken)]

    assert not broken
