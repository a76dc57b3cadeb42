"""How the number of runners on a server decides how often each shows that it is there."""

import pytest

from exclave.control.runtime.parked_polls import ParkedPolls
from exclave.domain.timings import Timings

TIMINGS = Timings()


def make_parked_polls(polling: int) -> ParkedPolls:
    parked_polls = ParkedPolls()
    parked_polls.polling = polling
    return parked_polls


@pytest.mark.parametrize("polling", [1, 100, 150])
def test_a_small_fleet_keeps_the_usual_times(polling: int) -> None:
    parked_polls = make_parked_polls(polling)

    assert parked_polls.hold_s(TIMINGS, 600) == TIMINGS.poll_hold_s
    assert parked_polls.renew_s(TIMINGS, busy=False) == TIMINGS.renew_s


@pytest.mark.parametrize("polling", [900, 2_000, 5_000, 10_000, 100_000])
def test_in_a_big_fleet_an_idle_runner_polls_before_it_would_have_to_renew(polling: int) -> None:
    parked_polls = make_parked_polls(polling)

    hold, renew = parked_polls.hold_s(TIMINGS, 3600), parked_polls.renew_s(TIMINGS, busy=False)

    assert TIMINGS.poll_hold_s < hold < renew <= 4500
    assert polling / hold <= max(40, polling / 3600)


@pytest.mark.parametrize("polling", [1, 10_000])
def test_a_busy_runner_always_renews_at_the_usual_pace(polling: int) -> None:
    assert make_parked_polls(polling).renew_s(TIMINGS, busy=True) == TIMINGS.renew_s


def test_a_poll_is_held_no_longer_than_its_runner_allows() -> None:
    assert make_parked_polls(10_000).hold_s(TIMINGS, 30) == 30


def test_signs_that_come_fast_are_written_at_once() -> None:
    assert make_parked_polls(1).may_wait(TIMINGS)
    assert not make_parked_polls(1).may_wait(Timings(renew_s=0.5))
