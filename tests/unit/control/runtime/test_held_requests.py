"""An org may occupy most connections of an API, and never all of them."""

import pytest

from exclave.control.runtime.held_requests import HeldRequests
from exclave.control.runtime.request_slots import Busy


def enter_often(held: HeldRequests, org: str, times: int) -> None:
    for _ in range(times):
        held.enter(org)


def test_an_org_holds_at_most_three_quarters_of_the_connections() -> None:
    held = HeldRequests(8)
    enter_often(held, "greedy", 6)

    with pytest.raises(Busy):
        held.enter("greedy")
    enter_often(held, "other", 6)

    assert (held.count("greedy"), held.count("other")) == (7, 6)


def test_what_keeps_executions_alive_is_refused_last() -> None:
    held = HeldRequests(8)
    enter_often(held, "greedy", 6)

    held.enter("greedy", is_vital=True)
    with pytest.raises(Busy):
        held.enter("greedy", is_vital=True)


def test_an_answered_request_makes_room() -> None:
    held = HeldRequests(8)
    enter_often(held, "greedy", 6)

    held.leave("greedy")
    held.enter("greedy")

    assert held.count("greedy") == 6
    for _ in range(6):
        held.leave("greedy")
    assert held.count("greedy") == 0


def test_one_request_is_always_possible() -> None:
    held = HeldRequests(1)

    held.enter("only")

    assert held.count("only") == 1


def test_without_a_limit_nobody_is_refused() -> None:
    held = HeldRequests()

    enter_often(held, "greedy", 1000)

    assert held.count("greedy") == 1000
