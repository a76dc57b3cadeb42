"""Limit how many requests of one org are processed at once, so that a flood delays no other org.

Why this exists: all requests share one event loop, which runs what is ready in order. Thirty
requests of one org that each compute for a millisecond delay the next request of another org by
thirty. Without slots, an org that sends enough of them delays the renewals of other orgs' runners,
and an execution that is not renewed is ended as lost.

An org that is alone has many slots (32 by default), because writes that arrive together share a
commit. While other orgs are active too, each has four. A request that waits for a worker process
gives up its slot meanwhile (`step_aside`), so that it delays none of its own org. See ADR 0022.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import ClassVar

from exclave.base.errors import Kind, Problem

SHARED = 4
"""Requests of one org that are processed at once while other orgs are active."""
ACTIVE_S = 2.0
"""How long after its last request an org counts as active."""
_WAITING_PER_SLOT = 32
"""Requests that may wait per slot; more are refused."""


class Busy(Problem):
    """Too many requests of the org are waiting already."""

    kind: ClassVar = Kind.TOO_MANY
    code: ClassVar = "busy"
    hint: ClassVar = "Wait until some of your org's other requests are answered, then try again."


@dataclass(slots=True)
class _Line:
    """The requests of one org: how many are processed, and which come next."""

    running: int = 0
    aside: int = 0
    waiting: deque[asyncio.Future[None]] = field(default_factory=deque)

    def is_empty(self) -> bool:
        return not (self.running or self.aside or self.waiting)


@dataclass(slots=True)
class _Slot:
    """The slot that a request holds."""

    slots: "RequestSlots"
    org: str
    line: _Line
    task: "asyncio.Task[object] | None"
    """A task that the request started inherits its context, but not its slot."""
    is_held: bool = False

    async def enter(self) -> None:
        await self.slots.enter(self.org, self.line)
        self.is_held = True

    def enter_again(self) -> None:
        """Occupy a slot beyond the limit: a request that holds one may be waiting for this one."""
        self.line.running += 1
        self.is_held = True

    def leave(self) -> None:
        if self.is_held:
            self.is_held = False
            self.slots.leave(self.org, self.line)


_current: ContextVar[_Slot | None] = ContextVar("request_slot", default=None)


@asynccontextmanager
async def step_aside() -> AsyncIterator[None]:
    """Release the slot of the current request while the block waits for something else."""
    slot = _current.get()
    if slot is None or not slot.is_held or slot.task is not asyncio.current_task():
        yield
        return
    slot.leave()
    slot.line.aside += 1
    try:
        yield
    finally:
        slot.line.aside -= 1
        slot.enter_again()


class RequestSlots:
    """The slots of all orgs. A request that finds the slots of its org taken waits in line."""

    def __init__(self, most: int = 0, shared: int = SHARED) -> None:
        """Allow an org `most` slots while it is alone, `shared` beside others; 0 means no limit."""
        self.most = most
        self.shared = min(shared, most)
        self._lines: dict[str, _Line] = {}
        self._newest = ""
        self._newest_at = float("-inf")
        self._others_at = float("-inf")
        """When an org other than the newest one was last seen."""

    @asynccontextmanager
    async def hold(self, org: str, kind: str = "") -> AsyncIterator[None]:
        """Hold a slot while the block lasts; requests of another kind have slots of their own."""
        if not self.most:
            yield
            return
        self._note(org)
        key = f"{org}/{kind}"
        line = self._lines.setdefault(key, _Line())
        slot = _Slot(self, org, line, asyncio.current_task())
        before = _current.set(slot)
        try:
            await slot.enter()
            yield
        finally:
            _current.reset(before)
            slot.leave()
            if line.is_empty():
                self._lines.pop(key, None)

    def is_alone(self, org: str) -> bool:
        """Return whether no other org sent a request lately."""
        others_at = self._others_at if org == self._newest else self._newest_at
        return asyncio.get_running_loop().time() - others_at > ACTIVE_S

    async def enter(self, org: str, line: _Line) -> None:
        """Wait for a slot; `Busy` if too many wait already."""
        if line.running < self._find_limit(org) and not line.waiting:
            line.running += 1
            return
        if len(line.waiting) >= self.most * _WAITING_PER_SLOT:
            raise Busy(f"{len(line.waiting)} requests of this org wait already", retry_after_s=1)
        slot: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        line.waiting.append(slot)
        self._admit(org, line)
        try:
            await slot
        except asyncio.CancelledError:
            if slot.done() and not slot.cancelled():
                self.leave(org, line)  # it was granted in the moment in which the caller gave up
            else:
                line.waiting.remove(slot)
            raise

    def leave(self, org: str, line: _Line) -> None:
        """Release a slot and admit the next waiting request."""
        line.running -= 1
        self._admit(org, line)

    def _note(self, org: str) -> None:
        now = asyncio.get_running_loop().time()
        if org != self._newest:
            self._others_at = self._newest_at
            self._newest = org
        self._newest_at = now

    def _find_limit(self, org: str) -> int:
        return self.most if self.is_alone(org) else self.shared

    def _admit(self, org: str, line: _Line) -> None:
        """Admit as many waiting requests as the current limit allows."""
        limit = self._find_limit(org)
        while line.waiting and line.running < limit:
            slot = line.waiting.popleft()
            if not slot.done():
                line.running += 1
                slot.set_result(None)
