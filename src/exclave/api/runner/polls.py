"""Poll and renewal as bare routes: every runner repeats them all the time."""

import asyncio
from collections.abc import Coroutine
from enum import Enum, auto
from typing import Any, TypeVar

from pydantic import BaseModel
from starlette.requests import Request
from starlette.types import Receive

from exclave.api.bare import BareRunnerRoute
from exclave.api.credentials import DepsOf, RunnerOf, note_runner, read_bearer
from exclave.api.requests import LimitedRequest, read_model
from exclave.api.routes import RunnerRoute, make_router
from exclave.control.access import recognise_runner
from exclave.control.dispatch import executions, polls, presence
from exclave.domain.identity import RunnerIdentity
from exclave.wire.runner import Poll, PollReply, Renew, RenewReply

T = TypeVar("T")


class _State(Enum):
    RUNNING = auto()
    GONE = auto()
    OVER = auto()


POLL = "/v1/poll"

described = make_router("/v1", "work", RunnerRoute)
"""The same two routes for the OpenAPI document; they are never served."""


@described.post("/poll")
async def poll(request: Poll, who: RunnerOf, deps: DepsOf) -> PollReply:
    """Wait for work and cancels. The same nonce gets the same offers again."""
    return await polls.poll(deps, who, request)


@described.post("/renew")
async def renew(request: Renew, who: RunnerOf, deps: DepsOf) -> RenewReply:
    """Renew the leases of executions; also the heartbeat of the runner."""
    return await executions.renew_executions(deps, who, request)


class PollRoute(BareRunnerRoute):
    """The long poll; it ends at once when the runner hangs up."""

    async def share_loop(self, request: LimitedRequest, who: RunnerIdentity) -> BaseModel | None:
        """Run without a slot: polls are held by the thousand, and cost nothing while they wait.

        Loop time is charged: an offer may be large, and it is signed again for each new poll.
        """
        shares = self.deps.loop_shares
        return await shares.run(who.org, POLL, lambda: self.answer(request, who), is_held=True)

    async def admit(self, request: Request) -> RunnerIdentity:
        """Authenticate a runner; the poll's own transaction confirms the token."""
        who = await recognise_runner(self.deps, read_bearer(request))
        return note_runner(self.deps, request, who)

    async def answer(self, request: LimitedRequest, who: RunnerIdentity) -> BaseModel | None:
        """Hold the request until there is something to reply."""
        body = await read_model(request, Poll)
        reply = await run_while_connected(request.receive, polls.poll(self.deps, who, body))
        if reply is None:
            await presence.note_disconnect(self.deps, who, body.boot, body.no)
        return reply


class RenewRoute(BareRunnerRoute):
    """The renewal."""

    async def answer(self, request: LimitedRequest, who: RunnerIdentity) -> BaseModel | None:
        """Renew the leases."""
        body = await read_model(request, Renew)
        return await executions.renew_executions(self.deps, who, body)


async def run_while_connected(receive: Receive, work: Coroutine[Any, Any, T]) -> T | None:
    """Run until done; if the client hangs up first, cancel and return None.

    It runs in the task of its request, so that the reply is sent without another task switch.
    """
    task = asyncio.current_task()
    assert task is not None  # noqa: S101 - a coroutine runs in one
    watcher = asyncio.create_task(_wait_until_gone(receive))
    state = _State.RUNNING

    def give_up(_: "asyncio.Task[None]") -> None:
        nonlocal state
        if state is _State.RUNNING:
            state = _State.GONE
            task.cancel()

    watcher.add_done_callback(give_up)
    try:
        return await work
    except asyncio.CancelledError:
        if state is _State.GONE and not task.uncancel():
            return None
        raise
    finally:
        state = _State.OVER
        watcher.cancel()


async def _wait_until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
