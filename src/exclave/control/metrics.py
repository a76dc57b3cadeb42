"""Totals over the whole instance for `/metrics`; they name no tenant."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from exclave.control.deps import Deps
from exclave.control.runtime.chore_metrics import ChoreTally
from exclave.domain.jobs import JobState
from exclave.domain.presence import PresenceState, decide_presence
from exclave.domain.quotas import Stored
from exclave.storage import jobs, metrics, usage
from exclave.storage.engine.database import Tx
from exclave.storage.usage import OrgUsage
from exclave.wire.runner import Stats


@dataclass(frozen=True, slots=True)
class Totals:
    """Counts of rows and sums of bytes over all orgs."""

    chores: Mapping[str, ChoreTally]
    jobs: Mapping[str, int]
    runners: Mapping[str, int]
    workflows_running: int
    polls_open: int
    rate_refusals: int
    disk_free_bytes: int
    disk_reserve_bytes: int
    stored_bytes: Mapping[str, int]
    worker_calls_waiting: int
    worker_calls_running: int
    worker_calls: int
    worker_seconds: float
    worker_kills: int
    runner_log_backlog_bytes: int
    runner_results_waiting: int
    runner_envelopes_refused: int
    runner_jobs_finished: int


async def gather_totals(deps: Deps) -> Totals:
    """Count everything on one snapshot."""

    def gather(tx: Tx) -> Totals:
        rows = metrics.list_active_runners(tx)
        stats = [Stats.model_validate(row.stats) for row in rows]
        states = (
            decide_presence(
                row.seen_at, row.due_at, row.cause, tx.now, deps.timings, disabled=report.disabled
            ).state
            for row, report in zip(rows, stats, strict=True)
        )
        return Totals(
            chores=deps.chores.list_all(),
            jobs={**_zeros(s for s in JobState if not s.is_final), **jobs.count_by_state(tx)},
            runners={**_zeros(PresenceState), **Counter(states)},
            workflows_running=metrics.count_running_workflows(tx),
            polls_open=deps.parked_polls.polling,
            rate_refusals=deps.rates.refused,
            disk_free_bytes=0 if deps.disk is None else deps.disk.free,
            disk_reserve_bytes=0 if deps.disk is None else deps.disk.reserve,
            stored_bytes={**_zeros(Stored), **_add_up(usage.list_all_usage(tx))},
            worker_calls_waiting=deps.workers.tally.waiting,
            worker_calls_running=deps.workers.tally.running,
            worker_calls=deps.workers.tally.calls,
            worker_seconds=deps.workers.tally.seconds,
            worker_kills=deps.workers.tally.kills,
            runner_log_backlog_bytes=sum(report.log_backlog_bytes for report in stats),
            runner_results_waiting=sum(report.results_waiting for report in stats),
            runner_envelopes_refused=sum(report.envelopes_refused for report in stats),
            runner_jobs_finished=sum(report.jobs_finished for report in stats),
        )

    return await deps.db.read(gather)


def _add_up(rows: Iterable[OrgUsage]) -> dict[str, int]:
    """Add up the bytes of each kind, over all orgs."""
    sums: Counter[str] = Counter()
    for row in rows:
        sums[row.kind] += row.used_bytes
    return {kind: sums[kind] for kind in Stored if kind in sums}


def _zeros(names: Iterable[str]) -> dict[str, int]:
    return {str(name): 0 for name in names}
