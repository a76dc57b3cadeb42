"""The executions that this process reports as alive, and the numbers of its requests."""

import asyncio
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from exclave.runner.jobs.executor import StopRequest
from exclave.runner.logs.protocols import ShippedLog

MAX_ALIVE = 128
"""The most that one request may list; an execution that is not listed counts as stopped."""
_REMEMBERED = 10_000


class Phase(StrEnum):
    """The phase of an execution: accepted, running, or ended with an undelivered result."""

    ACCEPTED = "accepted"
    RUNNING = "running"
    ENDED = "ended"


@dataclass(slots=True, eq=False)
class Execution:
    """One execution as this process knows it."""

    id: str
    epoch: int
    mutating: bool
    folder: Path
    phase: Phase = Phase.ACCEPTED
    confirmed_at: float = 0.0
    """When the last request was sent with which the control plane confirmed it (monotonic)."""
    superseded: bool = False
    stop: StopRequest = field(default_factory=StopRequest)
    log: ShippedLog | None = None
    shipping: asyncio.Task[None] | None = None


@dataclass(frozen=True, slots=True)
class Drawn:
    """A request's number together with the executions alive at the moment it was drawn."""

    boot: int
    no: int
    alive: tuple[Execution, ...]

    @property
    def ids(self) -> list[str]:
        """The ids of the executions."""
        return [execution.id for execution in self.alive]


class Roster:
    """The listed executions: from before the request to start until the result is settled."""

    def __init__(self, boot: int) -> None:
        self.boot = boot
        self._no = 0
        self._alive: dict[str, Execution] = {}
        self._seen: dict[str, None] = {}

    def draw(self) -> Drawn:
        """Return the next request number and the executions alive at that moment, in one step."""
        self._no += 1
        return Drawn(self.boot, self._no, tuple(self._alive.values()))

    def add(self, execution: Execution) -> None:
        """Add an execution to those that this process reports as alive."""
        self._alive[execution.id] = execution
        self._seen[execution.id] = None
        if len(self._seen) > _REMEMBERED:
            del self._seen[next(iter(self._seen))]

    def remove(self, execution: Execution) -> None:
        """Remove an execution: the next request, without it, proves that it stopped."""
        self._alive.pop(execution.id, None)

    def find(self, execution_id: str) -> Execution | None:
        """Return a listed execution, or None."""
        return self._alive.get(execution_id)

    def has_seen(self, execution_id: str) -> bool:
        """Return whether this process has ever accepted the execution."""
        return execution_id in self._seen

    def list_alive(self) -> list[Execution]:
        """Return all listed executions, oldest first."""
        return list(self._alive.values())

    def count_busy(self) -> int:
        """Return the number of executions that have not ended."""
        return sum(1 for execution in self._alive.values() if execution.phase is not Phase.ENDED)

    def count_room(self) -> int:
        """Return how many more executions one request could list."""
        return MAX_ALIVE - len(self._alive)
