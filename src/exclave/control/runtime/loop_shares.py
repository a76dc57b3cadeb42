"""Limit the time for which one org's requests hold the event loop while other orgs need it.

Why this exists: slots bound the number of requests, not what each of them computes. A request that
computes for thirty milliseconds delays every other request by that much. A single one does no harm,
but an org that sends one after the other would hold up all others in spite of its few slots. The
largest requests that the limits allowed did hold the loop for up to 80 ms.

Steps of a request that take longer than 3 ms are measured and charged to its org, and so is a large
body. Each org has a small reserve, and gets 1 % of the loop's time back. Once that is spent, and
while other orgs are active, requests to the routes that were slow lately wait for each other. Other
requests of the org never wait. See ADR 0022.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar

from exclave.base.loop_time import LONG_S, LoopTime, Measured
from exclave.control.runtime.request_slots import Busy, RequestSlots

T = TypeVar("T")

SHARE = 0.01
"""The share of the loop's time that long steps of one org may take on average."""
RESERVE_S = 0.2
"""Loop time that an org may use at once after it used none for a while: some ten large requests."""
SMALL_BODY = 64 << 10
BODY_S_PER_BYTE = 1e-8
"""What each further byte of a body costs: it is received in short steps, and all other writes wait
for the commit that stores it."""
LONGEST_WAIT_S = 20.0
"""A request that would have to wait longer is refused."""
_FORGET = 0.9
"""Factor by which the expected cost of a kind of request falls with each cheaper one."""
_MOST_KINDS = 10_000


@dataclass(slots=True)
class _Account:
    """The loop time that an org has left, and when that was computed."""

    left_s: float = RESERVE_S
    at: float = 0.0
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Requests that wait go one after the other."""

    def read(self, now: float) -> float:
        """Return what is left now."""
        self.left_s = min(RESERVE_S, self.left_s + (now - self.at) * SHARE)
        self.at = now
        return self.left_s


class LoopShares:
    """One account per org; an org that is alone is charged, but never waits."""

    def __init__(
        self, slots: RequestSlots, sleep: Callable[[float], Awaitable[None]] | None = None
    ) -> None:
        self._slots = slots
        self._sleep = sleep or asyncio.sleep
        self._accounts: dict[str, _Account] = {}
        self._expected: dict[tuple[str, str], float] = {}

    async def run(
        self,
        org: str,
        kind: str,
        work: Callable[[], Coroutine[Any, Any, T]],
        *,
        body: int = 0,
        is_held: bool = False,
    ) -> T:
        """Run a request of a kind (its route) once its org has loop time left.

        `body` is the size of what was received for it already. A request that is held open for
        long is charged only when it ends.
        """
        if not self._slots.most:
            return await work()
        expected_s = await self.enter(org, kind, is_held=is_held)
        time = LoopTime(is_long=expected_s > LONG_S)
        try:
            return await Measured(work(), time)
        finally:
            body_s = max(0, body - SMALL_BODY) * BODY_S_PER_BYTE
            self.charge(org, kind, time.long_s + body_s, expected_s)

    async def enter(self, org: str, kind: str, *, is_held: bool = False) -> float:
        """Wait until the org may send a request of a kind; `Busy` if that would take too long.

        What the request is expected to cost is charged at once, so that requests that arrive
        together do not all find the same time left. It is returned, to be passed to `charge`.
        Of requests that are held open nothing is charged at once.
        """
        expected_s = self._expected.get((org, kind), 0.0)
        if not self._slots.most or expected_s <= LONG_S:
            return 0.0
        account = self._find_account(org)
        if self._is_short(org, account):
            wait_s = self._find_wait(account)
            if wait_s > LONGEST_WAIT_S:
                message = "this org's requests have kept the server busy for long"
                raise Busy(message, retry_after_s=math.ceil(wait_s))
            async with account.turn:
                while self._is_short(org, account):
                    await self._sleep(self._find_wait(account))
        if is_held:
            return 0.0
        account.left_s -= expected_s
        return expected_s

    def charge(self, org: str, kind: str, seconds: float, expected_s: float) -> None:
        """Charge what a request cost instead of what was expected of it."""
        if self._slots.most and (seconds or (org, kind) in self._expected):
            self._note(org, kind, seconds)
            account = self._find_account(org)
            account.left_s = account.read(_now()) + expected_s - seconds

    def _note(self, org: str, kind: str, seconds: float) -> None:
        expected = max(seconds, self._expected.get((org, kind), 0.0) * _FORGET)
        if expected <= LONG_S:
            self._expected.pop((org, kind), None)
        elif (org, kind) in self._expected or len(self._expected) < _MOST_KINDS:
            self._expected[org, kind] = expected

    def _is_short(self, org: str, account: _Account) -> bool:
        return account.read(_now()) < 0 and not self._slots.is_alone(org)

    def _find_wait(self, account: _Account) -> float:
        return max(0.0, -account.read(_now()) / SHARE) + LONG_S

    def _find_account(self, org: str) -> _Account:
        account = self._accounts.get(org)
        if account is None:
            if len(self._accounts) >= _MOST_KINDS:
                now = _now()
                self._accounts = {
                    name: held
                    for name, held in self._accounts.items()
                    if held.read(now) < RESERVE_S or held.turn.locked()
                }
            account = self._accounts[org] = _Account(at=_now())
        return account


def _now() -> float:
    return asyncio.get_running_loop().time()
