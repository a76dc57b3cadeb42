"""Claim jobs for a runner: by priority and age, lanes respected, each signed with a new epoch."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

from exclave.control.deps import Deps
from exclave.control.runtime.parked_polls import PollSlot
from exclave.domain.executions import NewExecution
from exclave.domain.identity import OrgId, QueueId, RunnerIdentity
from exclave.domain.jobs import ExecutionId, JobId
from exclave.domain.lanes import conflicts_any
from exclave.storage import executions, jobs, queues, runners
from exclave.storage.engine.database import Tx
from exclave.storage.engine.statements import Deferred
from exclave.storage.jobs import Queued
from exclave.storage.queues import EpochCounter
from exclave.wire.runner import Dispatch

_PAGE = 50
_PAGES = 20


@dataclass(frozen=True, slots=True)
class Claimed:
    """An offer that was just made."""

    id: str
    epoch: int
    envelope: str


class Search:
    """A search for queued jobs under the queue's lock, which serialises claims.

    Its first page is queried when it is made and read later, so that the query shares an exchange
    with others of the transaction. Until it is read, the transaction may add jobs (which are merged
    into the page), but not change those that exist.
    """

    def __init__(self, tx: Tx, org: OrgId, queue: QueueId, kinds: Sequence[str]) -> None:
        self._tx = tx
        self._org = org
        self._queue = queue
        self._kinds = kinds
        self._turn = queues.ask_for_claims(tx, org, queue)
        self._first = self._ask(0)
        self._flushes = tx.flushes

    def read_turn(self) -> EpochCounter:
        """Return the counter and the generation of the queue's epochs."""
        (counter,) = self._turn()
        return counter

    def choose(self, slot: PollSlot) -> Iterator[Queued]:
        """Yield jobs of the runner's kinds with free lanes, as many as it has capacity for."""
        taken: list[str] | None = None
        left = slot.free
        for page in range(_PAGES):
            rows = self._ask(page)() if page else self._read_first()
            for job in rows:
                if not slot.understands(job.kind, job.spec):
                    continue
                if job.lanes and taken is None:
                    taken = list(queues.list_busy_lanes(self._tx, self._org, self._queue))
                if left and not conflicts_any(job.lanes, taken or ()):
                    taken = [*(taken or ()), *job.lanes] if job.lanes else taken
                    left -= 1
                    yield job
            if not left or len(rows) < _PAGE:
                return

    def _read_first(self) -> Sequence[Queued]:
        """Return the first page, with the jobs that this transaction added since it was queried."""
        if self._tx.flushes == self._flushes:
            rows: list[Queued] = self._first()
            new = jobs.list_unflushed(self._tx, self._org, self._queue, self._kinds)
            if not new:
                return rows
            if len(rows) + len(new) < _PAGE:
                return sorted([*rows, *new], key=lambda job: (-job.priority, job.id))
        return self._ask(0)()

    def _ask(self, page: int) -> Deferred[Queued]:
        return jobs.ask_queued(
            self._tx, self._org, self._queue, self._kinds, skip=page * _PAGE, limit=_PAGE
        )


def claim_jobs(tx: Tx, deps: Deps, slot: PollSlot, search: Search) -> list[Claimed]:
    """Claim the jobs that a search finds for a poll; return the offers."""
    chosen = list(search.choose(slot))
    if not chosen:
        return []
    who = slot.who
    counter, generation = search.read_turn()
    dispatches = [
        _address(tx, deps, who, job, epoch=generation << 32 | counter + number)
        for number, job in enumerate(chosen, start=1)
    ]
    envelopes = deps.keys.sign(tx, dispatches)
    _record(tx, slot, dispatches, envelopes)
    if deps.hub.has_peers():
        runners.note_answered(tx, who.org, who.runner)
    queues.set_counter(tx, who.org, who.queue, counter + len(chosen))
    return [
        Claimed(dispatch.execution_id, dispatch.epoch, envelope)
        for dispatch, envelope in zip(dispatches, envelopes, strict=True)
    ]


def _address(tx: Tx, deps: Deps, who: RunnerIdentity, job: Queued, *, epoch: int) -> Dispatch:
    """Address a job to a runner. The epoch grows with every offer, so it is the sequence too."""
    return Dispatch(
        org_id=who.org,
        queue_id=who.queue,
        runner_id=who.runner,
        job_id=job.id,
        execution_id=deps.ids.new("exe"),
        epoch=epoch,
        sequence=epoch,
        nonce=deps.ids.new("non"),
        issued_at=tx.now,
        expires_at=tx.now + timedelta(seconds=deps.timings.envelope_s),
        mutating=job.mutating,
        lanes=job.lanes,
        spec=job.spec,
        inputs=job.inputs,
        approved_digest=job.approved_digest,
    )


def _record(tx: Tx, slot: PollSlot, dispatches: list[Dispatch], envelopes: list[str]) -> None:
    who = slot.who
    offers = [
        NewExecution(
            org_id=who.org,
            id=ExecutionId(dispatch.execution_id),
            job_id=JobId(dispatch.job_id),
            queue_id=who.queue,
            runner_id=who.runner,
            mutating=dispatch.mutating,
            lanes=dispatch.lanes,
            epoch=dispatch.epoch,
            poll_nonce=slot.nonce,
            envelope=envelope,
        )
        for dispatch, envelope in zip(dispatches, envelopes, strict=True)
    ]
    executions.add_executions(tx, offers)
    for offer in offers:
        jobs.offer_job(tx, offer.org_id, offer.job_id)
        lanes = [(lane, offer.epoch, offer.id) for lane in offer.lanes]
        queues.occupy_lanes(tx, offer.org_id, offer.queue_id, lanes)
