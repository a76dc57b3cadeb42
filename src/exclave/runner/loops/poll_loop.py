"""The poll loop: one open request for work, answered with offers and cancellations."""

import asyncio
from collections.abc import Awaitable

from exclave import __version__
from exclave.base.errors import Problem
from exclave.base.logs import Log
from exclave.client.retry import RetryPolicy
from exclave.runner.control_plane.access_token import IdentityRefused
from exclave.runner.executions.accept import accept_offers
from exclave.runner.executions.deps import Deps
from exclave.runner.executions.kill_switch import is_disabled
from exclave.runner.executions.stop import cancel
from exclave.runner.wakeups import wait_first
from exclave.wire.runner import PROTOCOL, Poll, PollReply

_log = Log("runner.polling")

POLLS = RetryPolicy(first_s=0.5, longest_s=30.0)
MAX_FREE = 64
_SHORTEST_HOLD_S = 2.0
_USUAL_HOLD_S = 600.0
"""The longest poll that a runner requests, unless a server with a big fleet wants longer ones."""
_CUT_AFTER_S = 3.0
_GOOD_POLLS = 20
_QUICK_S = 0.05
_LONGEST_PAUSE_S = 1.0


class Poller:
    """Polls with a new nonce; repeats an unanswered poll with the same one."""

    def __init__(self, deps: Deps) -> None:
        self._deps = deps
        self._nonce = ""
        self._hold_s = deps.config.max_hold_s
        self._failures = 0
        self._good = 0
        self._quick = 0

    async def run(self) -> None:
        """Poll until the runner stops accepting jobs."""
        while not self._deps.signals.stopping.is_set():
            free = count_free(self._deps)
            self._nonce = self._nonce or self._deps.ids.token("pn")[:40]
            began = self._deps.clock.monotonic()
            try:
                reply = await self._ask(free)
            except IdentityRefused:
                raise
            except Problem as problem:
                await self._back_off(problem, began)
                continue
            self._nonce = ""
            if reply is not None:
                await self._obey(reply, free, began)

    async def _ask(self, free: int) -> PollReply | None:
        """Wait for the reply; None if a slot became free that this poll did not announce.

        Only a poll without free slots is abandoned, so no offer can be lost.
        """
        signals = self._deps.signals
        asking = asyncio.create_task(self._deps.session.call(lambda token: self._send(token, free)))
        asking.add_done_callback(_look_at)
        waits: list[Awaitable[object]] = [asking, signals.stopping.wait()]
        if free == 0:
            waits.append(self._wait_for_slot())
        await wait_first(self._deps.clock, None, *waits)
        if signals.stopping.is_set() or asking.cancelled():
            return None
        return asking.result()

    async def _wait_for_slot(self) -> None:
        while count_free(self._deps) == 0:
            await self._deps.signals.changed.wait()

    async def _send(self, token: str, free: int) -> PollReply:
        deps = self._deps
        drawn, sent_at = deps.roster.draw(), deps.clock.monotonic()
        deps.pace.note_sign(sent_at)
        return await deps.api.poll(
            token,
            Poll(
                boot=drawn.boot,
                no=drawn.no,
                nonce=self._nonce,
                free=free,
                executions=drawn.ids,
                max_hold_s=min(self._hold_s, max(_USUAL_HOLD_S, deps.pace.every_s)),
                version=__version__,
                protocol=PROTOCOL,
                capabilities=list(deps.executors),
                stats=deps.collect_stats(),
            ),
        )

    async def _obey(self, reply: PollReply, free: int, began: float) -> None:
        self._note_success()
        self._deps.pace.ask(reply.renew_s)
        self._deps.signals.report_wanted |= reply.report
        for execution_id in reply.cancel:
            execution = self._deps.roster.find(execution_id)
            if execution is not None:
                cancel(self._deps, execution)
        if reply.offers:
            await accept_offers(self._deps, reply.offers, free)
        await self._pause_if_quick(reply, began)

    async def _pause_if_quick(self, reply: PollReply, began: float) -> None:
        """Sleep after an empty reply that came at once, to avoid a busy loop."""
        if reply.offers or self._deps.clock.monotonic() - began > _QUICK_S:
            self._quick = 0
            return
        self._quick += 1
        await self._deps.clock.sleep(min(_LONGEST_PAUSE_S, _QUICK_S * 2.0 ** min(self._quick, 10)))

    async def _back_off(self, problem: Problem, began: float) -> None:
        lasted = self._deps.clock.monotonic() - began
        self._deps.pace.forget_sign()
        self._good = 0
        if _CUT_AFTER_S < lasted < self._hold_s:
            # A proxy cuts long requests: ask for shorter ones.
            self._hold_s = max(_SHORTEST_HOLD_S, 0.8 * lasted)
        if problem.code != "stale_request":
            _log.warning("poll_failed", code=problem.code, message=problem.message)
        pause = POLLS.choose_delay(self._deps.randomness, self._failures, problem)
        self._failures += 1
        await self._deps.clock.sleep(pause)

    def _note_success(self) -> None:
        self._failures = 0
        self._good += 1
        if self._good >= _GOOD_POLLS:
            self._good = 0
            self._hold_s = min(self._deps.config.max_hold_s, 1.5 * self._hold_s)


def _look_at(asking: asyncio.Task[PollReply]) -> None:
    if not asking.cancelled():
        asking.exception()  # errors of an abandoned poll are ignored


def count_free(deps: Deps) -> int:
    """Return how many jobs could be accepted now: free slots, room in a request, disk space."""
    if is_disabled(deps.disk.path) or not deps.gate.is_open:
        return 0
    if deps.measure(deps.disk.path).disk_free_bytes < deps.config.keep_free_bytes:
        return 0
    if deps.outbox.count_waiting() > deps.config.max_results_waiting:
        return 0
    slots = deps.config.capacity - deps.roster.count_busy()
    return max(0, min(slots, deps.roster.count_room(), MAX_FREE))
