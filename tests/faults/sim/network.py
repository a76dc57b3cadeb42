"""The network between runners and the control plane: loses, delays, repeats and cuts."""

import asyncio
from collections.abc import Coroutine
from random import Random
from typing import Any

from exclave.base.errors import Problem
from exclave.client.problems import Unreachable
from tests.faults.sim.control import Handle, SimControl
from tests.faults.sim.ledger import Ledger
from tests.faults.sim.mix import Mix

_LATE_REPLAY_S = 90.0


class Link:
    """The path between one machine and the control plane."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.up_cut_until = 0.0
        """No request gets through before."""
        self.down_cut_until = 0.0
        """No reply gets through before."""
        self.clogged_until = 0.0
        """Everything waits until then."""

    def cut(self, until: float, *, up: bool, down: bool) -> None:
        """Cut one way or both."""
        self.up_cut_until = max(self.up_cut_until, until if up else 0.0)
        self.down_cut_until = max(self.down_cut_until, until if down else 0.0)

    def heal(self) -> None:
        """Let everything through."""
        self.up_cut_until = self.down_cut_until = self.clogged_until = 0.0


class Exchange:
    """One request under way, and whoever waits for its reply."""

    def __init__(self, op: str, link: Link, handle: Handle) -> None:
        self.op = op
        self.link = link
        self.handle = handle
        self.reply: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.task: asyncio.Task[None] | None = None

    def settle(self, outcome: object) -> None:
        """Hand over a reply, if anybody still waits for it."""
        if not self.reply.done():
            self.reply.set_result(outcome)

    def fail(self) -> None:
        """Break the connection."""
        self.settle(Unreachable("the connection broke"))


class Network:
    """Carries requests; what became of one, only its reply can tell."""

    def __init__(self, random: Random, mix: Mix, control: SimControl, ledger: Ledger) -> None:
        self._random = random
        self._mix = mix
        self._control = control
        self._ledger = ledger
        self._tasks: dict[asyncio.Task[None], None] = {}
        self.healed = False

    def begin(self, exchange: Exchange) -> None:
        """Send a request off; from here on it lives without its sender."""
        exchange.task = self._spawn(self._carry(exchange))

    def abandon(self, exchange: Exchange) -> None:
        """The sender is gone: the server may notice, and drop the request, or not."""
        if exchange.op == "poll" and exchange.task is not None and self._random.random() < 0.5:
            exchange.task.cancel()

    async def _carry(self, exchange: Exchange) -> None:
        if self._happens(self._mix.replay):
            self._spawn(self._replay(exchange))
        await self._travel(exchange.link)
        if self._is_cut(exchange.link.up_cut_until) or self._happens(self._mix.loss):
            await self._lose(exchange)
            return
        outcome = await self._control.serve(exchange.op, exchange.handle)
        self._ledger.trace(exchange.op, exchange.link.name, tell_outcome(outcome))
        if outcome is None:
            exchange.fail()
            return
        if self._is_cut(exchange.link.down_cut_until) or self._happens(self._mix.reply_loss):
            self._ledger.counts["replies_lost"] += 1
            await self._lose(exchange)
            return
        await self._travel(exchange.link)
        exchange.settle(outcome)

    async def _replay(self, exchange: Exchange) -> None:
        """Deliver a second copy, at once or much later; its reply reaches nobody."""
        await asyncio.sleep(self._random.choice((0.0, 0.5, 10.0, _LATE_REPLAY_S)))
        await self._travel(exchange.link)
        outcome = await self._control.serve(exchange.op, exchange.handle)
        self._ledger.counts["replays"] += 1
        self._ledger.trace("replay", exchange.op, exchange.link.name, tell_outcome(outcome))

    async def _lose(self, exchange: Exchange) -> None:
        """Some losses are noticed soon; others only by the sender's patience."""
        if self._random.random() < 0.5:
            await self._travel(exchange.link)
            exchange.fail()

    async def _travel(self, link: Link) -> None:
        mean = 0.02 if self.healed else self._mix.delay_s
        now = asyncio.get_running_loop().time()
        await asyncio.sleep(max(0.0, link.clogged_until - now) + self._random.expovariate(1 / mean))

    def _happens(self, chance: float) -> bool:
        return not self.healed and chance > 0 and self._random.random() < chance

    def _is_cut(self, until: float) -> bool:
        return asyncio.get_running_loop().time() < until

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[task] = None
        task.add_done_callback(lambda done: self._tasks.pop(done, None))
        return task


def tell_outcome(outcome: object) -> str:
    """Put an outcome in a word for the trace."""
    if outcome is None:
        return "refused"
    return outcome.code if isinstance(outcome, Problem) else "ok"
