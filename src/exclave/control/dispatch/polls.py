"""The long poll: a runner says what it does and how much more it can take, and waits for work."""

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
from exclave.control.runtime.parked_polls import HeldPoll, Place
from exclave.domain.capabilities import KINDS
from exclave.domain.identity import RunnerIdentity
from exclave.domain.jobs import ExecutionState, StaleRequest
from exclave.storage import executions, jobs, runners
from exclave.storage.engine.database import Tx
from exclave.wire.runner import OLDEST_MINOR, PROTOCOL_MAJOR, Poll, PollReply


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
                key=who.queue,
                patient=await _is_idle(deps, who, request),
            )
            until = began + deps.fleet.hold_s(deps.timings, request.max_hold_s)
            held = HeldPoll(_find_place(who, request))
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
                    if terms in heard and not {work, cancels} <= heard:  # not: everybody is woken
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
        tx,
        who.org,
        who.runner,
        boot=request.boot,
        no=request.no,
        nonce=request.nonce,
        free=request.free,
        due=expect_next(tx, deps, busy=bool(request.executions)),
        version=request.version,
        protocol=request.protocol,
        capabilities=[str(kind) for kind in request.capabilities],
        stats=None if request.stats is None else request.stats.model_dump(),
    )
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
    place, busy = _find_place(who, request), bool(request.executions)
    if made := list_made(open_ones, place):
        return write_reply(deps, made, busy=True)
    if not open_ones and not waiting():
        return write_reply(deps, [], busy=busy)
    left = executions.list_open(tx, who.org, who.runner) if open_ones else []
    search = Search(tx, who.org, who.queue, place.kinds)
    return make_offers(tx, deps, place, search, left, busy=busy)


def _look(tx: Tx, deps: Deps, who: RunnerIdentity, request: Poll, *, cancelled: bool) -> PollReply:
    """Look again; another server may have made an offer to this poll and not got through."""
    place = _find_place(who, request)
    turn = runners.ask_turn(tx, who.org, who.runner)
    wanted = cancelled or deps.db.dialect.crosses_processes
    opened = executions.ask_open(tx, who.org, who.runner) if wanted else list
    search = Search(tx, who.org, who.queue, place.kinds)
    check_turn(turn(), place)
    open_ones = opened()
    if made := list_made(open_ones, place):
        return write_reply(deps, made, busy=True)
    return make_offers(tx, deps, place, search, open_ones, busy=bool(request.executions))


def _find_place(who: RunnerIdentity, request: Poll) -> Place:
    kinds = tuple(kind for kind in request.capabilities if kind in KINDS[who.kind])
    return Place(who, request.boot, request.no, request.nonce, request.free, kinds)
