"""The Runner API in process: real use cases behind a network that cannot be trusted."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar, cast

from exclave.base.errors import Problem
from exclave.client.problems import Unreachable
from exclave.client.runner import Deadlines
from exclave.client.work import WorkApi
from exclave.control.access import authenticate_runner
from exclave.control.deps import Deps
from exclave.control.dispatch import enrolment, executions, polls
from exclave.control.logs import logs
from exclave.domain.identity import RunnerId, RunnerIdentity
from exclave.domain.jobs import ExecutionId
from exclave.wire.runner import (
    AskNonce,
    AskToken,
    Enrol,
    Enrolled,
    LogReply,
    NonceReply,
    Poll,
    PollReply,
    Renew,
    RenewReply,
    Result,
    ResultReply,
    ServerKeys,
    Start,
    StartReply,
    TokenReply,
)
from tests.faults.sim.network import Exchange, Link, Network

T = TypeVar("T")
Ask = Callable[[Deps], Awaitable[T]]

_DEADLINES = Deadlines()


class Power:
    """The machine under all its processes: while it is frozen, none of them notices anything."""

    def __init__(self) -> None:
        self.frozen_until = 0.0

    @property
    def is_frozen(self) -> bool:
        return asyncio.get_running_loop().time() < self.frozen_until


class Gate:
    """One process: it stands still with its machine, and after its death it does nothing."""

    def __init__(self, power: Power) -> None:
        self._power = power
        self.dead = False

    async def pass_through(self) -> None:
        """Go on when the machine is not frozen; never, once the process is dead."""
        while self._power.is_frozen:  # noqa: ASYNC110 - the time is known, and may be prolonged
            await asyncio.sleep(self._power.frozen_until - asyncio.get_running_loop().time())
        self.check_alive()

    def check_alive(self) -> None:
        """End whoever asks, if the process was killed."""
        if self.dead:
            raise asyncio.CancelledError


class SimApi:
    """What a runner process calls instead of HTTP."""

    def __init__(self, network: Network, link: Link, gate: Gate) -> None:
        self._network = network
        self._link = link
        self._gate = gate
        self.contact_at = 0.0
        """When the newest renewal was sent that was answered."""

    @property
    def work(self) -> WorkApi:
        raise AssertionError("no job of the simulation needs it")

    async def enrol(self, request: Enrol) -> Enrolled:
        return await self._call("enrol", lambda deps: enrolment.enrol_runner(deps, request))

    async def ask_nonce(self, request: AskNonce) -> NonceReply:
        runner = RunnerId(request.runner_id)
        return await self._call("nonce", lambda deps: enrolment.issue_nonce(deps, runner))

    async def ask_token(self, request: AskToken) -> TokenReply:
        return await self._call("token", lambda deps: enrolment.issue_token(deps, request))

    async def get_keys(self) -> ServerKeys:
        return await self._call("keys", enrolment.list_server_keys)

    async def poll(self, token: str, request: Poll) -> PollReply:
        return await self._call(
            "poll",
            _bind(token, lambda deps, who: polls.poll(deps, who, request)),
            request.max_hold_s + _DEADLINES.poll_extra_s,
        )

    async def renew(self, token: str, request: Renew) -> RenewReply:
        sent_at = asyncio.get_running_loop().time()
        reply = await self._call(
            "renew",
            _bind(token, lambda deps, who: executions.renew_executions(deps, who, request)),
            _DEADLINES.renew_s,
        )
        self.contact_at = sent_at
        return reply

    async def start(self, token: str, execution_id: str, request: Start) -> StartReply:
        execution = ExecutionId(execution_id)
        return await self._call(
            "start",
            _bind(
                token,
                lambda deps, who: executions.start_execution(deps, who, execution, request),
            ),
        )

    async def append_log(
        self, token: str, execution_id: str, *, offset: int, epoch: int, frame: bytes
    ) -> LogReply:
        execution = ExecutionId(execution_id)
        return await self._call(
            "log",
            _bind(
                token,
                lambda deps, who: logs.append_log(deps, who, execution, epoch, offset, frame),
            ),
            _DEADLINES.log_s,
        )

    async def hand_in(self, token: str, execution_id: str, request: Result) -> ResultReply:
        execution = ExecutionId(execution_id)
        return await self._call(
            "result",
            _bind(token, lambda deps, who: executions.hand_in(deps, who, execution, request)),
        )

    async def _call(self, op: str, handle: Ask[T], within_s: float = _DEADLINES.call_s) -> T:
        self._gate.check_alive()
        exchange = Exchange(op, self._link, handle)
        timer = asyncio.get_running_loop().call_later(
            within_s, exchange.settle, Unreachable("no answer in time")
        )
        self._network.begin(exchange)
        try:
            outcome = await exchange.reply
        except asyncio.CancelledError:
            self._network.abandon(exchange)
            raise
        finally:
            timer.cancel()
        await self._gate.pass_through()
        if isinstance(outcome, Problem):
            raise outcome
        return cast("T", outcome)


def _bind(token: str, use_case: Callable[[Deps, RunnerIdentity], Awaitable[T]]) -> Ask[T]:
    async def handle(deps: Deps) -> T:
        return await use_case(deps, await authenticate_runner(deps, token))

    return handle
