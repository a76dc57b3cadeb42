"""One execution from start to end: permission, the job, its outcome, the result."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from functools import partial

from exclave.base.errors import Problem
from exclave.base.logs import Log, bind
from exclave.client.problems import RemoteProblem
from exclave.client.retry import RetryPolicy
from exclave.runner.control_plane.access_token import IdentityRefused
from exclave.runner.control_plane.envelope_trust import is_expired
from exclave.runner.executions.deps import Deps
from exclave.runner.executions.kill_switch import is_disabled
from exclave.runner.executions.records import mark_begun
from exclave.runner.executions.result_delivery import bind_sender, deliver, put_away
from exclave.runner.executions.roster import Execution, Phase
from exclave.runner.executions.stop import disable, is_unconfirmed, watch_deadman
from exclave.runner.jobs.executor import JobRun
from exclave.runner.logs.protocols import ShippedLog
from exclave.runner.outcomes import MESSAGE_CHARS, WorkFailed, end_by_stop, fail
from exclave.runner.processes.cell import Crowded
from exclave.runner.wakeups import wait_first
from exclave.wire.jobs import JobKind, OutcomeState, Reason
from exclave.wire.runner import Dispatch, Outcome, Start, StartReply

_log = Log("runner.executions")

STARTS = RetryPolicy(first_s=0.2, longest_s=5.0)
_REFUSALS = frozenset({400, 403, 404, 409, 410, 422})
_DISK_RETRY_S = 5.0


class Leave(StrEnum):
    """The reply to the request for permission to start."""

    GRANTED = "granted"
    CANCELLED = "cancelled"
    REFUSED = "refused"


async def run_execution(deps: Deps, execution: Execution, dispatch: Dispatch) -> None:
    """Run an accepted offer until its result is delivered."""
    with (
        bind(job_id=dispatch.job_id, execution_id=execution.id),
        settle_on_failure(deps, execution),
    ):
        match await _ask_permission(deps, execution, dispatch):
            case Leave.REFUSED:
                deps.audit.write("start_refused", execution_id=execution.id)
                await put_away(deps, execution)
                return
            case Leave.CANCELLED:
                outcome = end_by_stop(Reason.CANCELLED, "cancelled before it began")
            case Leave.GRANTED:
                outcome = await _work(deps, execution, dispatch)
        await finish(deps, execution, outcome)


@contextmanager
def settle_on_failure(deps: Deps, execution: Execution) -> Iterator[None]:
    """Mark the execution as ended if the block raises: nothing runs outside its executor."""
    try:
        yield
    except Exception:
        execution.phase = Phase.ENDED
        deps.signals.changed.fire()
        raise


async def finish(deps: Deps, execution: Execution, outcome: Outcome) -> None:
    """Store the outcome in the outbox, then deliver it."""
    while True:
        try:
            waiting = deps.outbox.put(execution.id, execution.epoch, outcome)
            break
        except OSError as error:
            _log.error("result_write_failed", exc=error)
            await deps.clock.sleep(_DISK_RETRY_S)
    execution.phase = Phase.ENDED
    deps.tally.jobs_finished += 1
    deps.audit.write(
        "job_ended",
        execution_id=execution.id,
        state=str(outcome.state),
        reason=str(outcome.reason),
        exit_code=outcome.exit_code,
    )
    deps.signals.changed.fire()
    await deliver(deps, execution, waiting)


async def _ask_permission(deps: Deps, execution: Execution, dispatch: Dispatch) -> Leave:
    """Ask for permission to start, retrying until answered. Nothing runs without it."""
    attempt = 0
    while execution.stop.reason is None and not is_expired(dispatch, deps.clock.now()):
        try:
            reply = await _send_start(deps, execution)
        except IdentityRefused:
            raise
        except Problem as problem:
            if _is_refusal(problem):
                return Leave.REFUSED
            pause = STARTS.choose_delay(deps.randomness, attempt, problem)
            await wait_first(deps.clock, pause, execution.stop.wait())
            attempt += 1
        else:
            return Leave.CANCELLED if reply.cancel else Leave.GRANTED
    return Leave.CANCELLED if execution.stop.reason is Reason.CANCELLED else Leave.REFUSED


async def _send_start(deps: Deps, execution: Execution) -> StartReply:
    sent_at = deps.clock.monotonic()

    async def send(token: str) -> StartReply:
        nonlocal sent_at
        drawn, sent_at = deps.roster.draw(), deps.clock.monotonic()
        request = Start(boot=drawn.boot, no=drawn.no, epoch=execution.epoch)
        return await deps.api.start(token, execution.id, request)

    reply = await deps.session.call(send)
    execution.confirmed_at = max(execution.confirmed_at, sent_at)
    return reply


def _is_refusal(problem: Problem) -> bool:
    """Return whether the reply is final; an outdated request number is not, the next is higher."""
    known = isinstance(problem, RemoteProblem) and problem.status in _REFUSALS
    return known and problem.code != "stale_request"


async def _work(deps: Deps, execution: Execution, dispatch: Dispatch) -> Outcome:
    if is_disabled(deps.disk.path):
        disable(deps, execution)
    if execution.stop.reason is not None:
        return _describe_not_begun(execution, execution.stop.reason)
    if is_unconfirmed(deps, execution):
        return _describe_not_begun(execution, Reason.DEADMAN)
    try:
        mark_begun(deps.disk, execution.folder)
        log = deps.open_log(execution.folder, execution.id, bind_sender(deps, execution))
    except OSError as error:
        return fail(Reason.DISK_FULL, f"not begun: the runner's disk fails: {error.strerror}")
    deps.audit.write(
        "job_started", execution_id=execution.id, job_id=dispatch.job_id, kind=dispatch.spec.kind
    )
    execution.phase = Phase.RUNNING
    deps.signals.renew_soon.set()
    execution.log = log
    execution.shipping = deps.spawn(log.run(), f"log {execution.id}")
    watch = asyncio.create_task(watch_deadman(deps, execution))
    try:
        outcome = await _execute(deps, execution, dispatch, log)
    finally:
        watch.cancel()
    # Whatever the executor wrote is masked here; its outputs it has masked itself.
    message = log.writer.mask(outcome.message)[:MESSAGE_CHARS]
    outcome = outcome.model_copy(update={"message": message})
    end, digest = await log.close()
    outcome = _describe_superseded(outcome) if execution.superseded else outcome
    return outcome.model_copy(update={"log_end": end, "log_sha256": digest})


async def _execute(
    deps: Deps, execution: Execution, dispatch: Dispatch, log: ShippedLog
) -> Outcome:
    executor = deps.executors[JobKind(dispatch.spec.kind)]
    try:
        with deps.cells.hold(execution.folder) as cell:
            uplink = deps.open_uplink(execution.id, execution.epoch)
            is_over = partial(_may_not_act, execution)
            async with deps.open_identity(dispatch, cell, log.writer, is_over) as identity:
                job = JobRun(dispatch, execution.folder, uplink, cell, identity)
                return await executor.run(job, log.writer, execution.stop)
    except WorkFailed as refused:
        log.writer.system(refused.outcome.message)
        return refused.outcome
    except Crowded as crowded:
        return fail(Reason.RUNNER_ERROR, str(crowded))
    except Exception as error:  # noqa: BLE001 - the edge of a job: a bug must not look like success
        _log.error("executor_failed", exc=error)
        await deps.kill_leftovers(execution.folder, deps.clock)
        return end_by_stop(Reason.RUNNER_ERROR, f"the runner failed: {type(error).__name__}")


def _may_not_act(execution: Execution) -> bool:
    """Return whether the customer stopped the job, or its work may be somebody else's by now."""
    return execution.superseded or execution.stop.reason in {Reason.DISABLED, Reason.DEADMAN}


def _describe_not_begun(execution: Execution, reason: Reason) -> Outcome:
    """Return the outcome of a job that never started: it failed and is not lost."""
    stopped = end_by_stop(reason, "stopped before it began")
    if execution.mutating and stopped.state is OutcomeState.INTERRUPTED:
        return stopped.model_copy(update={"state": OutcomeState.FAILED})
    return stopped


def _describe_superseded(outcome: Outcome) -> Outcome:
    message = f"superseded; the work had ended as {outcome.state} ({outcome.reason})"
    return end_by_stop(Reason.RUNNER_STOPPED_IT, message)
