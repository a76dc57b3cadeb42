"""Ids tell when they were made."""

from datetime import UTC, datetime, timedelta

import pytest

from exclave.base.ids import Ids, SeededRandomness, read_moment
from tests.support.world import ManualClock


def test_an_id_tells_its_moment_to_the_millisecond() -> None:
    clock = ManualClock()
    clock.at = datetime(2031, 2, 3, 4, 5, 6, 789_123, tzinfo=UTC)

    made = Ids(clock, SeededRandomness(1)).new("reg")

    found = read_moment(made)
    assert found is not None
    assert clock.at - found < timedelta(milliseconds=1)


@pytest.mark.parametrize("text", ["", "reg", "reg_", "reg_short", "reg_UPPERCASE0", "x_zzzzzzzzzz"])
def test_other_texts_tell_nothing(text: str) -> None:
    assert read_moment(text) is None
