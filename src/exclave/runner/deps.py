"""What the parts of a running runner share."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from exclave.base.clock import Clock
from exclave.base.ids import Ids, Randomness
from exclave.client.runner import RunnerApi
from exclave.runner.audit import Audit
from exclave.runner.cells import Cells
from exclave.runner.config import RunnerConfig
from exclave.runner.disk import DataFolder
from exclave.runner.logs.masking import Mask
from exclave.runner.outbox import Outbox
from exclave.runner.pace import Pace
from exclave.runner.roster import Roster
from exclave.runner.session import Session
from exclave.runner.shipping import OpenLog
from exclave.runner.signals import Signals
from exclave.runner.stats import Measure, Tally, collect_stats
from exclave.runner.switch import is_thrown
from exclave.runner.trust import Trust
from exclave.runner.work import Executor
from exclave.wire.jobs import JobKind
from exclave.wire.runner import RunnerTimings, Stats

KillLeftovers = Callable[[Path, Clock], Awaitable[bool]]
"""End every process that an execution left behind; tell whether that is certain."""


@dataclass(frozen=True, slots=True)
class Deps:
    """Made once per start, after the identity is known; handed to every part."""

    config: RunnerConfig
    api: RunnerApi
    clock: Clock
    ids: Ids
    executors: Mapping[JobKind, Executor]
    open_log: OpenLog
    kill_leftovers: KillLeftovers
    cells: Cells
    measure: Measure
    disk: DataFolder
    audit: Audit
    session: Session
    trust: Trust
    outbox: Outbox
    roster: Roster
    signals: Signals
    pace: Pace
    tally: Tally
    mask: Mask
    """Mask a text that leaves the runner beside any job's log."""
    spawn: Callable[[Coroutine[Any, Any, None], str], asyncio.Task[None]]
    """Run in the background under a name; a failure there ends the runner."""

    @property
    def timings(self) -> RunnerTimings:
        """Tell the durations that the control plane last decided."""
        return self.session.timings

    def collect_stats(self) -> Stats:
        """Measure what a sign of life tells about the runner."""
        folder = self.disk.path
        return collect_stats(
            self.measure(folder), self.roster, self.outbox, self.tally, disabled=is_thrown(folder)
        )

    @property
    def randomness(self) -> Randomness:
        """Where jitter comes from."""
        return self.ids.randomness
