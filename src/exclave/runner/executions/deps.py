"""Dependencies shared by the parts of a running runner."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from exclave.base.clock import Clock
from exclave.base.ids import Ids, Randomness
from exclave.client.runner import RunnerApi
from exclave.runner.audit import Audit
from exclave.runner.config import RunnerConfig
from exclave.runner.control_plane.access_token import Session
from exclave.runner.control_plane.envelope_trust import Trust
from exclave.runner.control_plane.execution_api import Uplink
from exclave.runner.control_plane.heartbeat_pace import Pace
from exclave.runner.data_folder import DataFolder
from exclave.runner.executions.kill_switch import is_disabled
from exclave.runner.executions.outbox import Outbox
from exclave.runner.executions.roster import Roster
from exclave.runner.executions.stats import Measure, Tally, collect_stats
from exclave.runner.executions.work_gate import WorkGate
from exclave.runner.jobs.executor import Executor
from exclave.runner.jobs.identity import OpenIdentity
from exclave.runner.logs.masking import Mask
from exclave.runner.logs.protocols import OpenLog
from exclave.runner.processes.cell import Cells
from exclave.runner.wakeups import Signals
from exclave.wire.jobs import JobKind
from exclave.wire.runner import RunnerTimings, Stats

KillLeftovers = Callable[[Path, Clock], Awaitable[bool]]
"""Kill every process that an execution left behind; return whether that is certain."""


@dataclass(frozen=True, slots=True)
class Deps:
    """The shared dependencies; built once per start, after the identity is known."""

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
    """Mask a text that leaves the runner outside of a job's log."""
    open_identity: OpenIdentity
    """Give a job its role in the customer's account."""
    spawn: Callable[[Coroutine[Any, Any, None], str], asyncio.Task[None]]
    """Run a coroutine in the background under a name; a failure in it ends the runner."""
    gate: WorkGate = field(default_factory=WorkGate)

    @property
    def timings(self) -> RunnerTimings:
        """The durations that the control plane sent last."""
        return self.session.timings

    def open_uplink(self, execution_id: str, epoch: int) -> Uplink:
        """Return the calls to the control plane that an execution may make."""
        return Uplink(
            self.api,
            self.session,
            execution_id=execution_id,
            epoch=epoch,
            link=self.config.link,
            clock=self.clock,
            randomness=self.randomness,
        )

    def collect_stats(self) -> Stats:
        """Return the measurements that a heartbeat reports."""
        folder = self.disk.path
        return collect_stats(
            self.measure(folder), self.roster, self.outbox, self.tally, disabled=is_disabled(folder)
        )

    @property
    def randomness(self) -> Randomness:
        """The source of jitter."""
        return self.ids.randomness
