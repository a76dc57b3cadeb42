"""How executions end, by whatever cause, and what that makes of job, lanes and workflow."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from exclave.base.digests import digest_json
from exclave.control.deps import Deps
from exclave.control.progress.advance import advance, tell_end
from exclave.control.progress.job_results import Ended, Verdict, take_end
from exclave.domain.identity import OrgId
from exclave.domain.jobs import (
    Ending,
    ExecutionState,
    JobId,
    JobState,
    Reason,
    end_unfinished,
)
from exclave.domain.lanes import LaneState
from exclave.flow.events import Retried
from exclave.storage import executions, jobs, queues
from exclave.storage.engine.database import AnyRow, Tx
from exclave.storage.executions import STARTED, UNSTARTED, Expected


@dataclass(frozen=True, slots=True)
class Account:
    """What is known of an ended execution beside the verdict."""

    message: str = ""
    exit_code: int | None = None
    outputs: Mapping[str, Any] = field(default_factory=dict)
    row: Mapping[str, Any] = field(default_factory=dict)
    """Further columns of the execution itself."""
    bare: bool = False
    """End job and step, and leave the install as it is: something about it cannot be written."""


def end_execution(
    tx: Tx,
    deps: Deps,
    execution: AnyRow,
    ending: Ending,
    expected: Expected,
    account: Account | None = None,
) -> bool:
    """End an execution and let everything follow; false, and no change, if it is not as expected.

    What the caller knows of the execution may be out of date: a runner can start or renew it
    between the read and this call. Only the statement that ends it sees what is true now.
    """
    known = account or Account()
    org = OrgId(execution.org_id)
    queues.lock_queue(tx, org, execution.queue_id)
    values = {"reason": ending.reason, **known.row}
    if not executions.end(tx, org, (execution.id, execution.epoch), expected, values):
        return False
    lane_state = LaneState.NEEDS_RECONCILE if ending.blocks_lanes else LaneState.FREE
    why = f"{ending.reason}: job {execution.job_id}" if ending.blocks_lanes else ""
    queues.leave_lanes(tx, org, execution.queue_id, execution.id, lane_state, why)
    tx.wake(f"queue:{execution.queue_id}", f"log:{execution.id}", f"job:{execution.job_id}")
    _move_job(tx, deps, execution, ending, known)
    return True


def end_stopped(
    tx: Tx, deps: Deps, open_ones: Sequence[AnyRow], boot: int, no: int, alive: Sequence[str]
) -> None:
    """End what the runner no longer has: a list that was drawn after the start is the proof."""
    for row in open_ones:
        gone = row.state == ExecutionState.RUNNING and row.id not in alive
        if gone and (boot, no) > (row.boot, row.start_no):
            end_interrupted(tx, deps, row, Reason.RUNNER_STOPPED_IT, STARTED)


def end_interrupted(
    tx: Tx,
    deps: Deps,
    execution: AnyRow,
    reason: Reason,
    expected: Expected,
    account: Account | None = None,
) -> bool:
    """End work that did not finish: offer it again if it only reads, else mark it lost."""
    job = jobs.find_job(tx, OrgId(execution.org_id), execution.job_id)
    attempts = job.attempts if job is not None else 0
    ending = end_unfinished(
        reason, mutating=execution.mutating, attempts=attempts, timings=deps.timings
    )
    return end_execution(tx, deps, execution, ending, expected, account)


def withdraw_offers(tx: Tx, deps: Deps, offers: Sequence[AnyRow]) -> None:
    """Take back offers that are still not started: safe, as no work begins without permission."""
    for row in offers:
        ending = Ending(JobState.QUEUED, Reason.RUNNER_STOPPED_IT)
        end_execution(tx, deps, row, ending, UNSTARTED)


def _move_job(tx: Tx, deps: Deps, execution: AnyRow, ending: Ending, known: Account) -> None:
    """Queue the job again or end it; one that is to be cancelled ends instead of waiting again."""
    org, job_id = OrgId(execution.org_id), JobId(execution.job_id)
    if ending.state is JobState.QUEUED:
        if jobs.requeue_job(tx, org, job_id):
            return
        ending = Ending(JobState.CANCELLED, Reason.CANCELLED)
    job = jobs.end_job(
        tx,
        org,
        job_id,
        ending.state,
        reason=ending.reason,
        message=known.message,
        exit_code=known.exit_code,
        outputs=known.outputs,
    )
    if job is None:
        return
    ended = Ended(job, ending.state, ending.reason, known.outputs, known.message)
    verdict = Verdict() if known.bare else take_end(tx, deps, ended)
    happening = tell_end(
        job,
        ending.state,
        reason=ending.reason,
        digest=product_digest(known.outputs),
        message=known.message,
        outputs=known.outputs,
        then=verdict.then,
    )
    if happening is None:
        return
    again = [] if verdict.again is None else [replace(happening, event=Retried(verdict.again))]
    advance(tx, deps, [happening, *again])


def product_digest(outputs: Mapping[str, Any]) -> str:
    """Name what a job produced: the digest it reports itself, or that of its outputs."""
    own = outputs.get("digest")
    if isinstance(own, str) and own.startswith("sha256:") and len(own) == len("sha256:") + 64:
        return own
    return digest_json(dict(outputs))
