"""Complete executions, whatever ended them, and update their job, lanes and workflow."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from exclave.base.digests import digest_json
from exclave.base.json_values import JsonObject
from exclave.control.deps import Deps
from exclave.control.progress.advance import advance
from exclave.control.progress.job_results import FinishedJob, Verdict, apply_job_result
from exclave.control.progress.workflow_events import make_end_event
from exclave.domain.executions import Execution, OpenExecution, ResultReceipt
from exclave.domain.jobs import (
    ExecutionState,
    JobEnding,
    JobState,
    Reason,
    end_unfinished,
)
from exclave.domain.lanes import LaneState
from exclave.flow.events import Retried
from exclave.storage import executions, jobs, queues
from exclave.storage.engine.database import Tx
from exclave.storage.executions import STARTED, UNSTARTED, Expected


@dataclass(frozen=True, slots=True)
class ResultDetails:
    """Message, exit code and outputs that are stored with an ended execution."""

    message: str = ""
    exit_code: int | None = None
    outputs: JsonObject = field(default_factory=dict)
    receipt: ResultReceipt | None = None
    """None if no runner handed in a result."""
    bare: bool = False
    """End only the job and its step: the result could not be applied to the install."""


def end_execution(
    tx: Tx,
    deps: Deps,
    execution: Execution | OpenExecution,
    ending: JobEnding,
    expected: Expected,
    details: ResultDetails | None = None,
) -> bool:
    """End an execution, its job and its step; return False, unchanged, if it is not as expected.

    What the caller knows of the execution may be out of date: a runner can start or renew it
    between the read and this call. Only the statement that ends it sees what is true now.
    """
    known = details or ResultDetails()
    org, held = execution.org_id, (execution.id, execution.epoch)
    queues.lock_queue(tx, org, execution.queue_id)
    if not executions.end(tx, org, held, expected, ending.reason, known.receipt):
        return False
    lane_state = LaneState.NEEDS_RECONCILE if ending.blocks_lanes else LaneState.FREE
    why = f"{ending.reason}: job {execution.job_id}" if ending.blocks_lanes else ""
    queues.leave_lanes(tx, org, execution.queue_id, execution.id, lane_state, why)
    tx.wake(f"queue:{execution.queue_id}", f"log:{execution.id}", f"job:{execution.job_id}")
    _move_job(tx, deps, execution, ending, known)
    return True


def end_stopped(
    tx: Tx,
    deps: Deps,
    open_ones: Sequence[OpenExecution],
    boot: int,
    no: int,
    alive: Sequence[str],
) -> None:
    """End executions that the runner no longer lists, if it made the list after it started them."""
    for execution in open_ones:
        gone = execution.state is ExecutionState.RUNNING and execution.id not in alive
        if gone and (boot, no) > (execution.boot, execution.start_no):
            end_interrupted(tx, deps, execution, Reason.RUNNER_STOPPED_IT, STARTED)


def end_interrupted(
    tx: Tx,
    deps: Deps,
    execution: Execution | OpenExecution,
    reason: Reason,
    expected: Expected,
    details: ResultDetails | None = None,
) -> bool:
    """End an unfinished execution: queue its job again if it only reads, else mark it lost."""
    job = jobs.find_job(tx, execution.org_id, execution.job_id)
    attempts = job.attempts if job is not None else 0
    ending = end_unfinished(
        reason,
        mutating=execution.mutating,
        attempts=attempts,
        timings=deps.timings,
        kind=None if job is None else job.kind,
    )
    return end_execution(tx, deps, execution, ending, expected, details)


def withdraw_offers(tx: Tx, deps: Deps, offers: Sequence[Execution | OpenExecution]) -> None:
    """Withdraw offers that were not started. This is safe: no job begins without permission."""
    for offer in offers:
        ending = JobEnding(JobState.QUEUED, Reason.RUNNER_STOPPED_IT)
        end_execution(tx, deps, offer, ending, UNSTARTED)


def _move_job(
    tx: Tx,
    deps: Deps,
    execution: Execution | OpenExecution,
    ending: JobEnding,
    known: ResultDetails,
) -> None:
    """Queue the job again or end it; a job with a cancel request ends instead."""
    org, job_id = execution.org_id, execution.job_id
    if ending.state is JobState.QUEUED:
        if jobs.requeue_job(tx, org, job_id):
            return
        ending = JobEnding(JobState.CANCELLED, Reason.CANCELLED)
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
    ended = FinishedJob(job, ending.state, ending.reason, known.outputs, known.message)
    verdict = Verdict() if known.bare else apply_job_result(tx, deps, ended)
    event = make_end_event(
        job,
        ending.state,
        reason=ending.reason,
        digest=product_digest(known.outputs),
        message=known.message,
        outputs=known.outputs,
        then=verdict.then,
    )
    again = [] if verdict.again is None else [replace(event, event=Retried(verdict.again))]
    advance(tx, deps, [event, *again])


def product_digest(outputs: JsonObject) -> str:
    """Return the digest of what a job produced: the one it reported, or that of its outputs."""
    own = outputs.get("digest")
    if isinstance(own, str) and own.startswith("sha256:") and len(own) == len("sha256:") + 64:
        return own
    return digest_json(dict(outputs))
