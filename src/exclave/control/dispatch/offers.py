"""Offers: what a poll is told, whoever makes it."""

from collections.abc import Sequence
from typing import Any

from exclave.base.errors import Unauthenticated
from exclave.control.deps import Deps
from exclave.control.dispatch.claims import Search, claim_jobs
from exclave.control.runtime.parked_polls import Place
from exclave.domain.identity import RunnerIdentity
from exclave.domain.jobs import ExecutionState, StaleRequest
from exclave.storage import executions, runners
from exclave.storage.engine.database import AnyRow, Tx
from exclave.wire.runner import Offer, PollReply


def make_offers(
    tx: Tx,
    deps: Deps,
    place: Place,
    search: Search,
    open_ones: Sequence[AnyRow] = (),
    *,
    busy: bool = False,
) -> PollReply:
    """Claim what the search finds for a poll, and tell what of its work is to stop."""
    cancel = [
        row.id for row in open_ones if row.cancel_requested_at is not None and not row.cancel_sent
    ]
    if cancel:
        executions.note_cancel_sent(tx, place.who.org, cancel)
    offers = claim_jobs(tx, deps, place, search)
    return write_reply(deps, offers, cancel, busy=bool(offers) or busy)


def write_reply(
    deps: Deps, offers: Sequence[Any], cancel: Sequence[str] = (), *, busy: bool
) -> PollReply:
    """Write down what a poll is told."""
    return PollReply(
        offers=[
            Offer(execution_id=row.id, epoch=row.epoch, envelope=row.envelope) for row in offers
        ],
        cancel=list(cancel),
        renew_s=deps.fleet.renew_s(deps.timings, busy=busy),
    )


def list_made(open_ones: Sequence[AnyRow], place: Place) -> list[AnyRow]:
    """List the offers that were made to this very poll already."""
    return [
        row
        for row in open_ones
        if row.poll_nonce == place.nonce and row.state == ExecutionState.OFFERED
    ]


def find_active(tx: Tx, who: RunnerIdentity) -> AnyRow:
    """Find the runner's own numbers under lock; it may have been revoked a moment ago."""
    return _check_active(runners.ask_turn(tx, who.org, who.runner)())


def check_turn(found: Sequence[AnyRow], place: Place) -> AnyRow:
    """Refuse a poll that is not its runner's newest."""
    runner = _check_active(found)
    if runner.poll_no != place.no or runner.boot != place.boot:
        raise StaleRequest("a newer poll of this runner was seen already")
    return runner


def _check_active(found: Sequence[AnyRow]) -> AnyRow:
    if not found or found[0].state != runners.ACTIVE:
        raise Unauthenticated("the runner was revoked")
    return found[0]
