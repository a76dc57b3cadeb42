"""Offer a new job to a waiting poll in the transaction that creates the job.

Why this exists: without it a job needs two durable commits to reach a runner: one that stores the
job, and, after the wake-up, one in which the poll claims it. Here the first transaction makes the
claim too, under the same locks and checks, and the poll is answered as soon as it is committed.

The poll may be parked on this server (`ParkedPolls`) or on another one. Each poll writes its nonce
and its free capacity into its runner's row, so that any server can make an offer to it; the NOTIFY
of the commit carries the offer to the server that holds the poll.

If anything prevents a direct offer (the poll was replaced, its runner was revoked, the message is
too long for NOTIFY), the job stays queued as usual, and the poll finds it when it is woken. See
`docs/internals/group-commit.md`, and `control/runtime/parked_polls.py` for the life of a poll.
"""

from collections.abc import Callable

from pydantic import BaseModel, ValidationError

from exclave.base.errors import Unauthenticated
from exclave.control.deps import Deps
from exclave.control.dispatch.claims import Search
from exclave.control.dispatch.offers import check_turn, make_offers
from exclave.control.dispatch.presence import latest_lost_due
from exclave.control.runtime.parked_polls import ParkedPolls, PollSlot
from exclave.domain.capabilities import KINDS
from exclave.domain.identity import OrgId, QueueId, RunnerIdentity
from exclave.domain.jobs import StaleRequest
from exclave.storage import runners
from exclave.storage.engine.database import Tx
from exclave.storage.engine.hub import Hub
from exclave.storage.engine.statements import Deferred
from exclave.storage.runners import Turn, WaitingPoll
from exclave.wire.jobs import JobKind
from exclave.wire.runner import PollReply, read_minor

OFFER = "offer"
"""Topic of messages between servers that carry an offer."""


class DirectOffer:
    """An offer to one waiting poll of a queue, made by the transaction that creates jobs.

    Construct it before anything else locks the queue: the row of a runner is always locked before
    that of its queue, or two transactions could wait for each other.
    """

    def __init__(self, tx: Tx, deps: Deps, org: OrgId, queue: QueueId) -> None:
        self._tx = tx
        self._deps = deps
        self._org = org
        self._queue = queue
        # Popped, not only found: no second transaction may make an offer to the same poll. One
        # that gets no offer here still watches its queue, and is parked again after a wake-up.
        self._parked = parked = deps.parked_polls.pop_oldest(org, queue)
        self._turn: Deferred[Turn] | None = None
        self._waiting: Deferred[WaitingPoll] | None = None
        if parked is not None:
            self._turn = runners.ask_turn(tx, org, parked.slot.who.runner)
        elif deps.hub.has_peers():
            self._waiting = runners.ask_any_turn(tx, org, queue, latest_lost_due(tx, deps))
        self._search: Search | None = None

    def look_ahead(self) -> None:
        """Start the search for queued jobs, for a transaction that only adds jobs to them.

        Its query shares an exchange with what the transaction asks next.
        """
        if self._turn is not None or self._waiting is not None:
            self._search = self._begin_search()

    def finish(self) -> None:
        """Offer queued jobs to the poll, if it is still its runner's newest."""
        slot = self._find_slot()
        if slot is None:
            return
        search = self._search or self._begin_search()
        reply = make_offers(self._tx, self._deps, slot, search)
        parked = self._parked
        if not reply.offers:
            return
        if parked is not None:
            # Only after the commit: the runner must not begin a job that is undone.
            self._tx.when_committed(lambda: parked.answer(reply))
        else:
            message = OfferMessage(org=self._org, queue=self._queue, nonce=slot.nonce, reply=reply)
            self._tx.broadcast(OFFER, message.model_dump_json())

    def _begin_search(self) -> Search:
        kinds = tuple(JobKind) if self._parked is None else self._parked.slot.kinds
        return Search(self._tx, self._org, self._queue, kinds)

    def _find_slot(self) -> PollSlot | None:
        """Return the poll to answer, with its runner's row locked; None if it was replaced."""
        if self._parked is None or self._turn is None:
            waiting = () if self._waiting is None else self._waiting()
            return _read_slot(waiting[0]) if waiting else None
        try:
            turn = check_turn(self._turn(), self._parked.slot)
        except (StaleRequest, Unauthenticated):
            return None
        # Another server sets `poll_free` to 0 when it has answered this poll already.
        return self._parked.slot if turn.poll_free != 0 else None


def offer_listener(parked_polls: ParkedPolls, hub: Hub) -> Callable[[str], None]:
    """Return the handler of offers that other servers made to polls parked here."""

    def receive(text: str) -> None:
        try:
            message = OfferMessage.model_validate_json(text)
        except ValidationError:
            return  # from a server of another version; the poll is woken and looks for itself
        parked = parked_polls.find(message.org, message.queue, message.nonce)
        if parked is not None:
            parked.answer(message.reply)
            hub.wake([f"queue:{message.queue}"])

    return receive


class OfferMessage(BaseModel):
    """An offer on its way to the server on which the poll is parked."""

    org: str
    queue: str
    nonce: str
    reply: PollReply


def _read_slot(poll: WaitingPoll) -> PollSlot:
    """Return the slot of a poll that is parked on another server."""
    who = RunnerIdentity(poll.org_id, poll.id, poll.queue_id, poll.kind, poll.name)
    kinds = tuple(name for name in poll.capabilities if name in KINDS[poll.kind])
    minor = read_minor(poll.protocol)
    return PollSlot(who, poll.boot, poll.poll_no, poll.poll_nonce, poll.poll_free, kinds, minor)
