"""Handing over: who makes a job offers it to a poll that waits, here or at another server."""

from collections.abc import Callable, Sequence

from pydantic import BaseModel, ValidationError

from exclave.base.errors import Unauthenticated
from exclave.control.deps import Deps
from exclave.control.dispatch.claims import Search
from exclave.control.dispatch.offers import check_turn, make_offers
from exclave.control.dispatch.presence import tell_lost
from exclave.control.runtime.parked_polls import Fleet, Place
from exclave.domain.capabilities import KINDS
from exclave.domain.identity import OrgId, QueueId, QueueKind, RunnerIdentity
from exclave.domain.jobs import StaleRequest
from exclave.storage import runners
from exclave.storage.engine.database import AnyRow, Tx
from exclave.storage.engine.hub import Hub
from exclave.storage.engine.statements import Deferred
from exclave.wire.jobs import JobKind
from exclave.wire.runner import PollReply

OFFER = "offer"
"""What servers call an offer that one made for a poll of another."""


class Handover:
    """An offer to a poll that waits, if one does, in the very transaction that makes the jobs.

    It begins before anything else locks the queue: a runner is always locked before its queue.
    """

    def __init__(self, tx: Tx, deps: Deps, org: OrgId, queue: QueueId) -> None:
        self._tx = tx
        self._deps = deps
        self._org = org
        self._queue = queue
        self._held = held = deps.fleet.take(org, queue)
        self._turn: Deferred | None = None
        if held is not None:
            self._turn = runners.ask_turn(tx, org, held.place.who.runner)
        elif deps.hub.has_peers():
            self._turn = runners.ask_any_turn(tx, org, queue, tell_lost(tx, deps))
        self._search: Search | None = None

    def look_ahead(self) -> None:
        """Look at what waits already, for a transaction that only adds jobs to that."""
        if self._turn is not None:
            self._search = self._begin_search()

    def finish(self) -> None:
        """Offer what there is by now; a poll that is over finds its work in another way."""
        place = self._find_place()
        if place is None:
            return
        search = self._search or self._begin_search()
        reply = make_offers(self._tx, self._deps, place, search)
        held = self._held
        if not reply.offers:
            return
        if held is not None:
            self._tx.when_committed(lambda: held.answer(reply))
        else:
            told = _Told(org=self._org, queue=self._queue, nonce=place.nonce, reply=reply)
            self._tx.broadcast(OFFER, told.model_dump_json())

    def _begin_search(self) -> Search:
        kinds = tuple(JobKind) if self._held is None else self._held.place.kinds
        return Search(self._tx, self._org, self._queue, kinds)

    def _find_place(self) -> Place | None:
        """Find the poll, under the runner's lock; nobody else may have answered it meanwhile."""
        found: Sequence[AnyRow] = () if self._turn is None else self._turn()
        if self._held is None:
            return _read_place(found[0]) if found else None
        try:
            runner = check_turn(found, self._held.place)
        except (StaleRequest, Unauthenticated):
            return None
        return self._held.place if runner.poll_free != 0 else None


def make_ear(fleet: Fleet, hub: Hub) -> Callable[[str], None]:
    """Make what takes an offer that another server made, if its poll waits here."""

    def hear(text: str) -> None:
        try:
            told = _Told.model_validate_json(text)
        except ValidationError:
            return  # of a server of another version; the poll looks for itself
        held = fleet.find(told.org, told.queue, told.nonce)
        if held is not None:
            held.answer(told.reply)
            hub.wake([f"queue:{told.queue}"])

    return hear


class _Told(BaseModel):
    """An offer on its way to the server where the poll waits."""

    org: str
    queue: str
    nonce: str
    reply: PollReply


def _read_place(row: AnyRow) -> Place:
    """Read a poll that waits somewhere from its runner's row."""
    kind = QueueKind(row.kind)
    who = RunnerIdentity(row.org_id, row.id, row.queue_id, kind, row.name)
    kinds = tuple(each for each in row.capabilities if each in KINDS[kind])
    return Place(who, row.boot, row.poll_no, row.poll_nonce, row.poll_free, kinds)
