"""Ids tell when they were made."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from exclave.base.id_forms import ID_PATTERN, is_install_id
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


def test_the_id_of_an_install_can_be_part_of_any_name_and_sorts_after_older_ones() -> None:
    clock = ManualClock()
    ids = Ids(clock, SeededRandomness(1))
    older = ids.new("ins")

    first = ids.new_install()
    clock.at += timedelta(seconds=1)
    second = ids.new_install()

    assert re.fullmatch(r"[a-z][a-z0-9]{29}", first)
    assert older < first < second
    assert all(re.fullmatch(ID_PATTERN, made) for made in (older, first, second))
    assert all(is_install_id(made) for made in (older, first, second))
    assert not is_install_id(ids.new("wfl"))
