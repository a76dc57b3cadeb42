"""Measurements of the machine and of the runner, sent with each renewal."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from exclave.runner.executions.outbox import Outbox
from exclave.runner.executions.roster import Roster
from exclave.wire.runner import Stats


@dataclass(frozen=True, slots=True)
class Machine:
    """The state of the machine at one moment."""

    load: float
    memory_bytes: int
    disk_free_bytes: int


Measure = Callable[[Path], Machine]


@dataclass(slots=True)
class Tally:
    """Counters since the start of this process."""

    envelopes_refused: int = 0
    jobs_finished: int = 0


def measure_machine(folder: Path) -> Machine:
    """Read the load, this process's memory and the free space of the data folder's disk."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    disk = os.statvfs(folder)
    return Machine(
        load=os.getloadavg()[0],
        memory_bytes=pages * os.sysconf("SC_PAGE_SIZE"),
        disk_free_bytes=disk.f_bavail * disk.f_frsize,
    )


def collect_stats(
    machine: Machine, roster: Roster, outbox: Outbox, tally: Tally, *, disabled: bool
) -> Stats:
    """Return the statistics that a renewal reports."""
    logs = [execution.log for execution in roster.list_alive() if execution.log is not None]
    return Stats(
        load=machine.load,
        memory_bytes=machine.memory_bytes,
        disk_free_bytes=machine.disk_free_bytes,
        log_backlog_bytes=sum(log.backlog for log in logs),
        results_waiting=outbox.count_waiting(),
        envelopes_refused=tally.envelopes_refused,
        jobs_finished=tally.jobs_finished,
        disabled=disabled,
    )
