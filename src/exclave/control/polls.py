"""The long poll: a runner says what it does and how much more it can take, and waits for work."""

from collections.abc import Sequence
from typing import Any

from exclave.base.errors import Conflict, Unauthenticated
from exclave.control.access import confirm_generation
from exclave.control.claims import Search, claim_jobs
from exclave.control.deps import Deps
from exclave.control.endings import end_stopped, withdraw_offers
from exclave.control.fleet import HeldPoll
from exclave.control.presence import expect_next
from exclave.domain.identity import RunnerIdentity
from exclave.domain.jobs import ExecutionState, StaleRequest
from exclave.storage import executions, jobs, runners
from exclave.storage.database import AnyRow, Tx
from exclave.wire.runner import OLDEST_MINOR, PROTOCOL_MAJOR, Offer, Poll, PollReply


async def poll(deps: Deps, who: RunnerIdentity, request: Poll) -> PollReply:
    """Hold the request until there is something to say, or its time is up."""
    check_protocol(request.protocol)
    began = deps.clock.monotonic()
    deps.fleet.polling += 1
    try:
        work, cancels, terms = f"queue:{who.queue}", f"cancel:{who.queue}", f"stack:{who.queue}"
        with deps.hub.watch(work, cancels, terms) as watch:
            reply = await deps.db.write(
                lambda tx: _begin_poll(tx, deps, who, request),
                key=who.queue, patient=await _is_idle(deps, who, request),
            )  # fmt: skip
            until = began + deps.fleet.hold_s(deps.timings, request.max_hold_s)
            held = HeldPoll(who, request)
            while not _says_something(reply):
                deps.fleet.hold(held)
                try:
                    woken = await watch.wait(until - deps.clock.monotonic())
                finally:
                    deps.fleet.release(held)
                if held.reply is not None:
                    return held.reply
                if woken:
                    heard = frozenset(watch.heard)
                    reply = await deps.db.write(
                        lambda tx: _look(tx, deps, who, request, cancelled=cancels in heard),  # noqa: B023 - awaited here
                        key=who.queue,
                    )
                    if terms in heard:
                        reply = reply.model_copy(update={"report": True})
                    continue
                # A fleet that has grown meanwhile lets this poll wait longer.
                longer = began + deps.fleet.hold_s(deps.timings, request.max_hold_s)
                if longer <= until or deps.hub.closed:
                    break
                until = longer
            if not _says_something(reply):
                deps.fleet.idle.add(who.runner)
            return reply
    finally:
        deps.fleet.polling -= 1


def _says_something(reply: PollReply) -> bool:
    return bool(reply.offers or reply.cancel or reply.report)


async def _is_idle(deps: Deps, who: RunnerIdentity, request: Poll) -> bool:
    """Tell whether a poll only goes on waiting: then nobody minds when its sign of life is written.

    A job that comes later is written with it, and then wakes it.
    """
    was_idle = who.runner in deps.fleet.idle
    deps.fleet.idle.discard(who.runner)
    if not was_idle or request.executions or request.max_hold_s < deps.timings.renew_s:
        return False
    if not deps.fleet.may_wait(deps.timings):
        return False
    return not await deps.db.read(lambda tx: jobs.ask_waiting(tx, who.org, who.queue)(), alone=True)


def check_protocol(protocol: str) -> None:
    """Refuse runners that are too old or from another major version."""
    major, minor = (int(part) for part in protocol.split("."))
    if major != PROTOCOL_MAJOR or minor < OLDEST_MINOR:
        raise Conflict(
            f"this control plane does not speak runner protocol {protocol}",
            hint=f"Use a runner that speaks protocol {PROTOCOL_MAJOR}.{OLDEST_MINOR} or later.",
        )


def _begin_poll(tx: Tx, deps: Deps, who: RunnerIdentity, request: Poll) -> PollReply:
    noted = runners.note_poll(
        tx, who.org, who.runner, boot=request.boot, no=request.no,
        due=expect_next(tx, deps, busy=bool(request.executions)), version=request.version,
        protocol=request.protocol, capabilities=[str(kind) for kind in request.capabilities],
        stats=None if request.stats is None else request.stats.model_dump(),
    )  # fmt: skip
    opened = executions.ask_open(tx, who.org, who.runner)
    waiting = jobs.ask_waiting(tx, who.org, who.queue)
    if not noted():
        find_active(tx, who)
        raise StaleRequest("a newer poll of this runner was seen already")
    confirm_generation(tx, who)
    open_ones = opened()
    end_stopped(tx, deps, open_ones, request.boot, request.no, request.executions)
    unheard = [
        row
        for row in open_ones
        if row.state == ExecutionState.OFFERED
        and row.poll_nonce != request.nonce
        and row.id not in request.executions
    ]
    withdraw_offers(tx, deps, unheard)
    again = [
        row
        for row in open_ones
        if row.poll_nonce == request.nonce and row.state == ExecutionState.OFFERED
    ]
    if again:
        return _reply(deps, again, [], busy=True)
    if not open_ones and not waiting():
        return _reply(deps, [], [], busy=bool(request.executions))
    left = executions.list_open(tx, who.org, who.runner) if open_ones else []
    return _offer(tx, deps, request, left, Search(tx, who, request))


class Handover:
    """An offer to a poll that waits here, if one does, in the very transaction that makes the jobs.

    It begins before anything else locks the queue: a runner is always locked before its queue.
    """

    def __init__(self, tx: Tx, deps: Deps, org: str, queue: str) -> None:
        self._tx = tx
        self._deps = deps
        self._held = held = deps.fleet.take(org, queue)
        self._turn = runners.ask_turn(tx, held.who.org, held.who.runner) if held else list
        self._search: Search | None = None

    def look_ahead(self) -> None:
        """Look at what waits already, for a transaction that only adds jobs to that."""
        if self._held is not None:
            self._search = Search(self._tx, self._held.who, self._held.request)

    def finish(self) -> None:
        """Offer what there is by now; a poll that is over finds its work in another way."""
        held = self._held
        if held is None:
            return
        who, request = held.who, held.request
        search = self._search or Search(self._tx, who, request)
        try:
            _check_turn(self._turn(), request)
        except (StaleRequest, Unauthenticated):
            return
        reply = _offer(self._tx, self._deps, request, [], search)
        if reply.offers:
            self._tx.when_committed(lambda: held.answer(reply))


def _look(tx: Tx, deps: Deps, who: RunnerIdentity, request: Poll, *, cancelled: bool) -> PollReply:
    turn = runners.ask_turn(tx, who.org, who.runner)
    opened = executions.ask_open(tx, who.org, who.runner) if cancelled else list
    search = Search(tx, who, request)
    _check_turn(turn(), request)
    return _offer(tx, deps, request, opened(), search)


def _offer(
    tx: Tx, deps: Deps, request: Poll, open_ones: Sequence[AnyRow], search: Search
) -> PollReply:
    cancel = [
        row.id for row in open_ones if row.cancel_requested_at is not None and not row.cancel_sent
    ]
    if cancel:
        executions.note_cancel_sent(tx, search.who.org, cancel)
    offers = claim_jobs(tx, deps, search)
    return _reply(deps, offers, cancel, busy=bool(offers or request.executions))


def find_active(tx: Tx, who: RunnerIdentity) -> AnyRow:
    """Find the runner's own numbers under lock; it may have been revoked a moment ago."""
    return _check_active(runners.ask_turn(tx, who.org, who.runner)())


def _check_turn(found: Sequence[AnyRow], request: Poll) -> None:
    runner = _check_active(found)
    if runner.poll_no != request.no or runner.boot != request.boot:
        raise StaleRequest("a newer poll of this runner was seen already")


def _check_active(found: Sequence[AnyRow]) -> AnyRow:
    if not found or found[0].state != runners.ACTIVE:
        raise Unauthenticated("the runner was revoked")
    return found[0]


def _reply(deps: Deps, offers: Sequence[Any], cancel: Sequence[str], *, busy: bool) -> PollReply:
    return PollReply(
        offers=[
            Offer(execution_id=row.id, epoch=row.epoch, envelope=row.envelope) for row in offers
        ],
        cancel=list(cancel),
        renew_s=deps.fleet.renew_s(deps.timings, busy=busy),
    )
