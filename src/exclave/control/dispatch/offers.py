"""Replies to polls: offers of claimed jobs, and executions to cancel."""

from collections.abc import Sequence

from exclave.base.errors import Unauthenticated
from exclave.control.deps import Deps
from exclave.control.dispatch.claims import Claimed, Search, claim_jobs
from exclave.control.runtime.parked_polls import PollSlot
from exclave.domain.executions import OpenExecution
from exclave.domain.identity import RunnerIdentity
from exclave.domain.jobs import ExecutionState, StaleRequest
from exclave.domain.runners import RunnerState
from exclave.storage import executions, runners
from exclave.storage.engine.database import Tx
from exclave.storage.runners import Turn
from exclave.wire.runner import Offer, PollReply


def make_offers(
    tx: Tx,
    deps: Deps,
    slot: PollSlot,
    search: Search,
    open_ones: Sequence[OpenExecution] = (),
    *,
    busy: bool = False,
) -> PollReply:
    """Claim the jobs that a search finds, and return them with the executions to cancel."""
    cancel = [
        execution.id
        for execution in open_ones
        if execution.cancel_requested_at is not None and not execution.cancel_sent
    ]
    if cancel:
        executions.note_cancel_sent(tx, slot.who.org, cancel)
    offers = claim_jobs(tx, deps, slot, search)
    return write_reply(deps, offers, cancel, busy=bool(offers) or busy)


def write_reply(
    deps: Deps,
    offers: Sequence[Claimed | OpenExecution],
    cancel: Sequence[str] = (),
    *,
    busy: bool,
) -> PollReply:
    """Return the reply to a poll."""
    return PollReply(
        offers=[
            Offer(execution_id=offer.id, epoch=offer.epoch, envelope=offer.envelope)
            for offer in offers
        ],
        cancel=list(cancel),
        renew_s=deps.parked_polls.renew_s(deps.timings, busy=busy),
    )


def list_made(open_ones: Sequence[OpenExecution], slot: PollSlot) -> list[OpenExecution]:
    """Return the offers that were already made to this poll."""
    return [
        execution
        for execution in open_ones
        if execution.poll_nonce == slot.nonce and execution.state is ExecutionState.OFFERED
    ]


def find_active(tx: Tx, who: RunnerIdentity) -> Turn:
    """Return the runner's turn, locked; `Unauthenticated` if it was revoked."""
    return _check_active(runners.ask_turn(tx, who.org, who.runner)())


def check_turn(turns: Sequence[Turn], slot: PollSlot) -> Turn:
    """Return the runner's turn; `StaleRequest` if it has sent a newer poll."""
    turn = _check_active(turns)
    if turn.poll_no != slot.no or turn.boot != slot.boot:
        raise StaleRequest("a newer poll of this runner was seen already")
    return turn


def _check_active(turns: Sequence[Turn]) -> Turn:
    if not turns or turns[0].state is not RunnerState.ACTIVE:
        raise Unauthenticated("the runner was revoked")
    return turns[0]
