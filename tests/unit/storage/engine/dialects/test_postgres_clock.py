"""The database's time between two of its answers."""

from exclave.storage.engine.dialects.postgres_clock import ServerClock
from tests.support.world import ManualClock

SECOND = 1_000_000


def make() -> tuple[ServerClock, ManualClock]:
    clock = ManualClock()
    return ServerClock(clock), clock


def test_it_tells_nothing_before_the_first_answer_and_long_after_the_last() -> None:
    server, clock = make()
    assert server.read() is None

    server.note_answer(50 * SECOND)
    clock.advance(1.5)
    assert server.read() == 51.5 * SECOND

    clock.advance(1.0)
    assert server.read() is None


def test_it_is_asked_a_few_times_a_second_and_not_more_often() -> None:
    server, clock = make()
    assert server.is_due()

    server.note_answer(50 * SECOND)
    clock.advance(0.1)
    assert not server.is_due()
    clock.advance(0.2)
    assert server.is_due()


def test_an_answer_that_was_late_does_not_turn_the_clock_back() -> None:
    server, clock = make()
    server.note_answer(50 * SECOND)
    clock.advance(1.0)

    server.note_answer(int(50.4 * SECOND))  # waited for us for 0.6 s

    assert server.read() == 51 * SECOND


def test_a_database_whose_clock_was_set_back_is_believed_after_a_few_seconds() -> None:
    server, clock = make()
    server.note_answer(50 * SECOND)
    for _ in range(6):
        clock.advance(1.0)
        server.note_answer(int((clock.monotonic() + 10) * SECOND))

    assert server.read() == int((clock.monotonic() + 10) * SECOND)
