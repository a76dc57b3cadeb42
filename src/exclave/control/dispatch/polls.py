"""The long poll: a runner reports its executions and free capacity, and waits for work.

A reply can come from four places: the poll's own first look, another look after a wake-up, a
transaction of this server that creates a job (`direct_offers.py`), or an offer of another server.
The life of a parked poll is drawn in `control/runtime/parked_polls.py`.
"""

from exclave.base.errors import Conflict
from exclave.control.access import confirm_generation
from exclave.control.deps import Deps
from exclave.control.dispatch.claims import Search
from exclave.control.dispatch.completion import end_stopped, withdraw_offers
from exclave.control.dispatch.offers import (
    check_turn,
    find_active,
    list_made,
    make_offers,
    write_reply,
)
from exclave.control.dispatch.presence import expect_next
from exclave.control.runtime.parked_polls import ParkedPoll, PollSlot
from exclave.domain.capabilities import KINDS
from exclave.domain.identity import RunnerIdentity
from exclave.domain.jobs import ExecutionState, StaleRequest
from exclave.storage import executions, jobs, runners
from exclave.storage.engine.database import Tx
from exclave.storage.engine.hub import Watch
from exclave.wire.runner import OLDEST_MINOR, PROTOCOL_MAJOR, Poll, PollReply, read_minor


async def poll(deps: Deps, who: RunnerIdentity, request: Poll) -> PollReply:
    """Return offers, cancels or a request to report; hold the request until there are some."""
    check_protocol(request.protocol)
    began = deps.clock.monotonic()
    deps.parked_polls.polling += 1
    try:
        # Watched before the first look, so that a job that is created in between wakes the poll.
        with deps.hub.watch(*_keys_of(who)) as watch:
            reply = await deps.db.write(
                lambda tx: _begin_poll(tx, deps, who, request),
                key=who.queue,
                patient=await _is_idle(deps, who, request),
            )
            reply = await _wait_for_reply(deps, who, request, watch, reply, began)
            if not _says_something(reply):
                deps.parked_polls.idle.add(who.runner)
            return reply
    finally:
        deps.parked_polls.polling -= 1


def _keys_of(who: RunnerIdentity) -> tuple[str, str, str]:
    """Return what wakes a poll: new work, cancels, and changed terms of the runner's Stack."""
    return f"queue:{who.queue}", f"cancel:{who.queue}", f"stack:{who.queue}"


async def _wait_for_reply(
    deps: Deps,
    who: RunnerIdentity,
    request: Poll,
    watch: Watch,
    reply: PollReply,
    began: float,
) -> PollReply:
    """Park the poll until its reply says something or the hold time is over."""
    until = began + deps.parked_polls.hold_s(deps.timings, request.max_hold_s)
    parked = ParkedPoll(_make_slot(who, request))
    while not _says_something(reply):
        woken = await _park(deps, parked, watch, until - deps.clock.monotonic())
        if parked.reply is not None:
            return parked.reply
        if woken:
            reply = await _answer_woken_poll(deps, who, request, frozenset(watch.heard))
            continue
        # The more polls are open, the longer each is held: their number may have grown meanwhile.
        longer = began + deps.parked_polls.hold_s(deps.timings, request.max_hold_s)
        if longer <= until or deps.hub.closed:
            break
        until = longer
    return reply


async def _park(deps: Deps, parked: ParkedPoll, watch: Watch, seconds: float) -> bool:
    """Make the poll available for direct offers; return whether it was woken in time.

    It is available only while it waits: a poll that looks for jobs must not be answered twice.
    """
    deps.parked_polls.add(parked)
    try:
        return await watch.wait(seconds)
    finally:
        deps.parked_polls.remove(parked)


async def _answer_woken_poll(
    deps: Deps, who: RunnerIdentity, request: Poll, heard: frozenset[str]
) -> PollReply:
    """Return the reply of a poll that was woken by some of its keys."""
    work, cancels, terms = _keys_of(who)
    reply = await deps.db.write(
        lambda tx: _look(tx, deps, who, request, cancelled=cancels in heard), key=who.queue
    )
    # Work and cancels together mean that every poll was woken (some wake-ups may be lost, or
    # the server stops), which says nothing about the Stack.
    if terms in heard and not {work, cancels} <= heard:
        reply = reply.model_copy(update={"report": True})
    return reply


def _says_something(reply: PollReply) -> bool:
    return bool(reply.offers or reply.cancel or reply.report)


async def _is_idle(deps: Deps, who: RunnerIdentity, request: Poll) -> bool:
    """Return whether a poll only goes on waiting, so that its write may share a later commit.

    A job that is created meanwhile is written in the same commit at the latest, and wakes the poll.
    """
    was_idle = who.runner in deps.parked_polls.idle
    deps.parked_polls.idle.discard(who.runner)
    if not was_idle or request.executions or request.max_hold_s < deps.timings.renew_s:
        return False
    if not deps.parked_polls.may_wait(deps.timings):
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
    """Record the poll, end what the runner no longer runs, and make offers."""
    busy = bool(request.executions)
    # The three statements share one exchange with PostgreSQL: none of their rows is read until
    # all are sent. The first also locks the runner's row, which comes before its queue's.
    noted = runners.note_poll(
        tx,
        who.org,
        who.runner,
        boot=request.boot,
        no=request.no,
        nonce=request.nonce,
        free=request.free,
        due=expect_next(tx, deps, busy=busy),
        version=request.version,
        protocol=request.protocol,
        capabilities=[str(kind) for kind in request.capabilities],
        stats=None if request.stats is None else request.stats.model_dump(),
    )
    opened = executions.ask_open(tx, who.org, who.runner)
    waiting = jobs.ask_waiting(tx, who.org, who.queue)
    if not noted():
        find_active(tx, who)  # a revoked runner gets its own error
        raise StaleRequest("a newer poll of this runner was seen already")
    # Recorded here and not by a write of its own: an idle runner sends nothing but polls.
    confirm_generation(tx, who)
    open_ones = opened()
    end_stopped(tx, deps, open_ones, request.boot, request.no, request.executions)
    # Offers of an earlier poll that the runner does not list never reached it. Their lanes are
    # freed now instead of when the offers expire.
    lost_offers = [
        execution
        for execution in open_ones
        if execution.state is ExecutionState.OFFERED
        and execution.poll_nonce != request.nonce
        and execution.id not in request.executions
    ]
    withdraw_offers(tx, deps, lost_offers)
    slot = _make_slot(who, request)
    # The same nonce again is a retry of this very poll: it gets the offers that were made to it,
    # and no further ones.
    if made := list_made(open_ones, slot):
        return write_reply(deps, made, busy=True)
    # The usual case of an idle runner: nothing runs, nothing is queued, and the queue's row need
    # not be locked.
    if not open_ones and not waiting():
        return write_reply(deps, [], busy=busy)
    left = executions.list_open(tx, who.org, who.runner) if open_ones else []
    search = Search(tx, who.org, who.queue, slot.kinds)
    return make_offers(tx, deps, slot, search, left, busy=busy)


def _look(tx: Tx, deps: Deps, who: RunnerIdentity, request: Poll, *, cancelled: bool) -> PollReply:
    """Make offers to a poll that was woken.

    With several servers, another one may have made an offer to this poll whose message was lost.
    """
    slot = _make_slot(who, request)
    turn = runners.ask_turn(tx, who.org, who.runner)
    needs_open = cancelled or deps.db.dialect.crosses_processes
    opened = executions.ask_open(tx, who.org, who.runner) if needs_open else list
    search = Search(tx, who.org, who.queue, slot.kinds)
    check_turn(turn(), slot)
    open_ones = opened()
    if made := list_made(open_ones, slot):
        return write_reply(deps, made, busy=True)
    return make_offers(tx, deps, slot, search, open_ones, busy=bool(request.executions))


def _make_slot(who: RunnerIdentity, request: Poll) -> PollSlot:
    kinds = tuple(kind for kind in request.capabilities if kind in KINDS[who.kind])
    minor = read_minor(request.protocol)
    return PollSlot(who, request.boot, request.no, request.nonce, request.free, kinds, minor)
