"""How many runners this server holds, and how slowly that lets them breathe."""

from dataclasses import dataclass

from exclave.domain.identity import RunnerIdentity
from exclave.domain.timings import Timings
from exclave.storage.engine.group_commit import PATIENCE_S
from exclave.wire.runner import PollReply

SIGNS_PER_SECOND = 40
"""Signs of life of idle runners that one server invites per second."""
BIG = 700
"""Beyond this many runners even that is too much, and the signs become rarer still.

A runner that goes away is noticed by its connection; a sign of life is for one that only hangs.
"""
LONGEST_SPREAD_S = 3600.0
_REST = 1.25
"""An idle runner that polls need not renew: its next poll comes before that is due."""
_UNHURRIED = 4
"""A write may wait for at most this part of the time between two signs."""


@dataclass(frozen=True, slots=True)
class Place:
    """A poll, as far as an offer needs it."""

    who: RunnerIdentity
    boot: int
    no: int
    nonce: str
    free: int
    kinds: tuple[str, ...]
    """What the runner can do and its queue may ask for."""


@dataclass(slots=True, eq=False)
class HeldPoll:
    """A poll that waits here for work; whoever makes some may answer it."""

    place: Place
    reply: PollReply | None = None

    def answer(self, reply: PollReply) -> None:
        """Say what its runner is offered; it is woken after that."""
        self.reply = reply


class Fleet:
    """The polls that are open here, and whose last one brought nothing."""

    def __init__(self) -> None:
        self.polling = 0
        self.idle: set[str] = set()
        self._held: dict[tuple[str, str], dict[HeldPoll, None]] = {}

    def hold(self, poll: HeldPoll) -> None:
        """Let a poll be found by those who make work for its queue."""
        self._held.setdefault(_find_key(poll), {})[poll] = None

    def release(self, poll: HeldPoll) -> None:
        """Let a poll be found no longer."""
        key = _find_key(poll)
        held = self._held.get(key, {})
        held.pop(poll, None)
        if not held:
            self._held.pop(key, None)

    def take(self, org: str, queue: str) -> HeldPoll | None:
        """Find the poll that has waited longest for work of a queue, for one caller only."""
        found = next(iter(self._held.get((org, queue), ())), None)
        if found is not None:
            self.release(found)
        return found

    def find(self, org: str, queue: str, nonce: str) -> HeldPoll | None:
        """Find the poll with this nonce, if it waits here."""
        held = self._held.get((org, queue), ())
        return next((poll for poll in held if poll.place.nonce == nonce), None)

    def may_wait(self, timings: Timings) -> bool:
        """Tell whether the sign of an idle runner may be written a moment later."""
        return timings.renew_s >= _UNHURRIED * PATIENCE_S

    def hold_s(self, timings: Timings, longest: float) -> float:
        """Tell how long a poll may wait: the usual time, more in a big fleet, never too long."""
        return min(longest, max(timings.poll_hold_s, self._spread_s()))

    def renew_s(self, timings: Timings, *, busy: bool) -> float:
        """Tell when the next heartbeat is due; only idle runners of a big fleet may take longer."""
        if busy:
            return timings.renew_s
        return max(timings.renew_s, _REST * self._spread_s())

    def _spread_s(self) -> float:
        spread = self.polling / SIGNS_PER_SECOND * max(1.0, self.polling / BIG)
        return min(spread, LONGEST_SPREAD_S)


def _find_key(poll: HeldPoll) -> tuple[str, str]:
    return poll.place.who.org, poll.place.who.queue
