"""The long polls parked on this server, and the heartbeat interval derived from their number.

Why this exists: a runner without work sends a long poll, and the server holds the request until a
job arrives. A parked poll is registered here by queue, so that the transaction which creates a job
can answer it directly (`control/dispatch/direct_offers.py`): one durable commit between a request
and the runner instead of two. Without the registry every new job would have to wake the polls of
its queue, each of which would then claim jobs in a transaction of its own. That path remains, for
whatever the registry misses.

The life of a poll:

    request ──► first look (claims what is queued) ──► found something ──► reply
                        │ nothing to say
                        ▼
               parked in ParkedPolls ◄───────────────────────────┐
                 │         │        │                            │ nothing to say
                 │         │        └─ woken by its queue ──► looks again ──► reply
                 │         │                                     ▲
                 │         └─ popped by a transaction that       │ the transaction was undone or
                 │            creates jobs (DirectOffer) ────────┤ had nothing for it
                 │                    │ committed                │
                 │                    ▼                          │
                 │              answered ──► woken ──► reply (no further transaction)
                 ├─ found by nonce for an offer of another server (NOTIFY) ──► answered
                 ▼
            hold time over ──► empty reply; the runner polls again

A poll whose runner hung up is removed by the request that parked it; an offer that was made to it
is withdrawn by the runner's next poll, like any reply that got lost.

The hold time and the heartbeat interval grow with the number of open polls: 10,000 idle runners
cost 1.4 % of a core (measured when the interval was introduced).
"""

from dataclasses import dataclass

from exclave.base.json_values import JsonObject
from exclave.domain.identity import RunnerIdentity
from exclave.domain.timings import Timings
from exclave.storage.engine.group_commit import PATIENCE_S
from exclave.wire.runner import PROTOCOL_MINOR, ROLES_MINOR, PollReply

SIGNS_PER_SECOND = 40
"""Polls and heartbeats of idle runners that one server accepts per second."""
BIG = 700
"""Number of open polls above which even that rate is lowered.

A runner that goes away is noticed by its connection. Heartbeats only serve to notice a runner that
hangs with its connection open.
"""
LONGEST_SPREAD_S = 3600.0
_REST = 1.25
"""An idle runner that polls need not renew: its next poll arrives before its heartbeat is due."""
_UNHURRIED = 4
"""A write may be delayed by at most this fraction (1/4) of the heartbeat interval."""


@dataclass(frozen=True, slots=True)
class PollSlot:
    """The identity and capacity of a poll: all that is needed to make an offer to it."""

    who: RunnerIdentity
    boot: int
    no: int
    nonce: str
    free: int
    kinds: tuple[str, ...]
    """Job kinds that the runner supports and its queue allows."""
    minor: int = PROTOCOL_MINOR
    """Of the protocol that the runner speaks."""

    def understands(self, kind: str, spec: JsonObject) -> bool:
        """Return whether the runner knows a kind of job, and all that is in its specification."""
        return kind in self.kinds and (self.minor >= ROLES_MINOR or not spec.get("role"))


@dataclass(slots=True, eq=False)
class ParkedPoll:
    """A poll that waits on this server, and its reply once another transaction has made one."""

    slot: PollSlot
    reply: PollReply | None = None

    def answer(self, reply: PollReply) -> None:
        """Set the reply. The caller wakes the poll afterwards."""
        self.reply = reply


class ParkedPolls:
    """The registry of parked polls by queue, and the number of all open polls."""

    def __init__(self) -> None:
        self.polling = 0
        """Open polls, parked or not."""
        self.idle: set[str] = set()
        """Runners whose last poll returned nothing."""
        self._parked: dict[tuple[str, str], dict[ParkedPoll, None]] = {}

    def add(self, poll: ParkedPoll) -> None:
        """Register a poll, so that transactions that create jobs for its queue find it."""
        self._parked.setdefault(_key_of(poll), {})[poll] = None

    def remove(self, poll: ParkedPoll) -> None:
        """Remove a poll, if it is still registered."""
        key = _key_of(poll)
        parked = self._parked.get(key, {})
        parked.pop(poll, None)
        if not parked:
            self._parked.pop(key, None)

    def pop_oldest(self, org: str, queue: str) -> ParkedPoll | None:
        """Remove and return the poll of a queue that has been parked longest."""
        oldest = next(iter(self._parked.get((org, queue), ())), None)
        if oldest is not None:
            self.remove(oldest)
        return oldest

    def find(self, org: str, queue: str, nonce: str) -> ParkedPoll | None:
        """Return the parked poll with this nonce, if there is one."""
        parked = self._parked.get((org, queue), ())
        return next((poll for poll in parked if poll.slot.nonce == nonce), None)

    def may_wait(self, timings: Timings) -> bool:
        """Return whether the heartbeat of an idle runner may be written a moment later."""
        return timings.renew_s >= _UNHURRIED * PATIENCE_S

    def hold_s(self, timings: Timings, longest: float) -> float:
        """Return how long a poll is held: longer the more polls are open, at most `longest`."""
        return min(longest, max(timings.poll_hold_s, self._spread_s()))

    def renew_s(self, timings: Timings, *, busy: bool) -> float:
        """Return the time to the next heartbeat; only idle runners get a longer one."""
        if busy:
            return timings.renew_s
        return max(timings.renew_s, _REST * self._spread_s())

    def _spread_s(self) -> float:
        spread = self.polling / SIGNS_PER_SECOND * max(1.0, self.polling / BIG)
        return min(spread, LONGEST_SPREAD_S)


def _key_of(poll: ParkedPoll) -> tuple[str, str]:
    return poll.slot.who.org, poll.slot.who.queue
