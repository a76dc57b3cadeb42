"""Without one of its guards the protocol breaks, and the simulation notices which promise did."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults import test_scenarios as scenarios
from tests.faults.sim import mutants
from tests.faults.sim.mix import Mix
from tests.faults.sim.mutants import Mutant
from tests.faults.sim.run import run_seed

_SEARCHED = 40
"""How many seeds are tried where the first one no longer shows it."""

_CUTS = Mix(partition_every_s=40, runners=(2, 2), step_s=45, heal_at_s=500)
_REPLAYS = Mix(replay=0.5, runners=(2, 2), heal_at_s=300)
_FREEZES = Mix(freeze_every_s=25, runners=(2, 2), step_s=15, heal_at_s=400)
_CRASHES = Mix(crash_every_s=20, runners=(2, 2), step_s=15, heal_at_s=300)
_DEATHS = Mix(crash_every_s=30, gone_for_good=1.0, step_s=60, heal_at_s=200, workflows=4)
_SILENCES = Mix(reply_loss=0.3, runners=(2, 2), crash_every_s=40, heal_at_s=300)
_LOSSES = Mix(loss=0.3, runners=(2, 2), step_s=40, heal_at_s=300)
_OPERATORS = Mix(
    full_every_s=20,
    rotate_every_s=30,
    restore_every_s=150,
    remove_every_s=100,
    crash_every_s=60,
    runners=(2, 2),
    step_s=15,
    heal_at_s=400,
)
_FULL_DISKS = Mix(full_every_s=10, restore_every_s=100, loss=0.1, runners=(2, 2), heal_at_s=400)
_CANCELS = Mix(cancel_every_s=15, runners=(2, 2), step_s=6, heal_at_s=300, workflows=4)

_CAUGHT = (
    (mutants.NO_FENCE, "I1", _FREEZES),
    (mutants.NO_STATE_CHECK, "I2", _FREEZES),
    (mutants.NO_GUARD_AT_ALL, "I2", _FREEZES),
    (mutants.NO_RESULT_DIGEST, "I6", _SILENCES),
    (mutants.NO_OUTBOX, "I6", _SILENCES),
    (mutants.NO_DEADMAN, "I4", _CUTS),
    (mutants.NO_ORDER_OF_PROOF, "I4", _REPLAYS),
    (mutants.OFFERS_CHANGES_AGAIN, "I6", _CRASHES),
    (mutants.NO_RECONCILE, "I4", _CRASHES),
    (mutants.NO_LEAVE, "I4", _LOSSES),
    (mutants.NO_LANES, "I4", Mix(runners=(2, 2), workflows=4)),
    (mutants.NO_SWEEP, "I7", _DEATHS),
    (mutants.CANCEL_AT_ONCE, "I5", _CANCELS),
    (mutants.NO_AUDIT, "I10", Mix()),
    (mutants.NO_MASKING, "I11", Mix()),
    (mutants.MEMORY_FIRST, "I7", _FULL_DISKS),
    (mutants.NO_DIGEST, "I12", Mix(workflows=4)),
)
_SEEN_BY = (
    (mutants.NO_NONCE, scenarios.test_a_lost_poll_reply_gets_the_same_offer_again),
    (
        mutants.NO_START_GRACE,
        scenarios.test_a_control_plane_that_is_down_for_an_hour_loses_nothing,
    ),
    (mutants.NO_DEADMAN, scenarios.test_changes_that_are_cut_off_stop_before_they_are_given_up),
)


@pytest.mark.parametrize(
    ("mutant", "invariant", "mix"), _CAUGHT, ids=[one.name for one, _, _ in _CAUGHT]
)
def test_a_missing_guard_is_noticed(mutant: Mutant, invariant: str, mix: Mix) -> None:
    with mutant.alive():
        broken = next(
            (found for seed in range(_SEARCHED) if (found := run_seed(seed, mix).broken)), ()
        )

    assert any(one.startswith(invariant) for one in broken), broken[:5]


@pytest.mark.parametrize(
    "mix",
    [
        _CUTS,
        _REPLAYS,
        _FREEZES,
        _CRASHES,
        _DEATHS,
        _SILENCES,
        _LOSSES,
        _FULL_DISKS,
        _CANCELS,
        _OPERATORS,
    ],
)
def test_with_all_guards_the_same_faults_break_nothing(mix: Mix) -> None:
    for seed in range(3):
        report = run_seed(seed, mix)

        assert not report.broken, (mix, report.broken[:5])


@pytest.mark.parametrize(
    ("mutant", "scenario"), _SEEN_BY, ids=[f"{one.name}: {s.__name__}" for one, s in _SEEN_BY]
)
def test_a_missing_guard_fails_its_scenario(
    mutant: Mutant, scenario: Callable[[Path], None], tmp_path: Path
) -> None:
    with mutant.alive(), pytest.raises(AssertionError):
        scenario(tmp_path)


@pytest.mark.parametrize(
    ("mutant", "mix"), [(mutants.NO_FINAL_GUARD, _FREEZES), (mutants.NO_NONCE, _REPLAYS)]
)
def test_a_guard_behind_another_guard_breaks_no_promise(mutant: Mutant, mix: Mix) -> None:
    """Some guards are spare in this model; they are kept against code to come.

    A job ends by its one open execution, and that ends once (`NO_GUARD_AT_ALL` takes both out).
    A poll that forgets its nonce only costs time, as nothing begins without leave. The epoch that
    a runner sends along is fixed for an execution's life: only one that lies would send another.
    """
    with mutant.alive():
        broken = [found for seed in range(3) if (found := run_seed(seed, mix).broken)]

    assert not broken
