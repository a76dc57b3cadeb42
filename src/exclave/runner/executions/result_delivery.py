"""Delivery of results: uploads the log, then the outcome, and retries until it is settled."""

from exclave.base.errors import Problem
from exclave.base.logs import Log
from exclave.client.problems import RemoteProblem
from exclave.client.retry import RetryPolicy
from exclave.runner.control_plane.access_token import IdentityRefused
from exclave.runner.data_folder import DataFolderBroken, remove_tree
from exclave.runner.executions.deps import Deps
from exclave.runner.executions.outbox import WaitingResult
from exclave.runner.executions.records import forget_record
from exclave.runner.executions.roster import Execution
from exclave.runner.jobs.executor import EndedRun
from exclave.runner.logs.protocols import SendLog, ShippedLog
from exclave.runner.outcomes import MESSAGE_CHARS
from exclave.runner.wakeups import wait_first
from exclave.wire.jobs import OutcomeState, Reason
from exclave.wire.runner import LogReply, Outcome, Result

_log = Log("runner.delivery")

RESULTS = RetryPolicy(first_s=1.0, longest_s=300.0)
_LOOK_EVERY_S = 5.0
_BACK_WITHIN_S = 2.0
_UNREADABLE = frozenset({400, 413, 422})
_SETTLED = frozenset({"superseded", "not_found"})
"""Problem codes that settle a result; after any other one it is sent again."""


def bind_sender(deps: Deps, execution: Execution) -> SendLog:
    """Return the function that sends frames of an execution's log."""

    async def send(offset: int, frame: bytes) -> LogReply:
        return await deps.session.call(
            lambda token: deps.api.append_log(
                token, execution.id, offset=offset, epoch=execution.epoch, frame=frame
            )
        )

    return send


async def deliver(deps: Deps, execution: Execution, waiting: WaitingResult) -> None:
    """Upload the log, settle leftovers, deliver the result and remove the execution."""
    until = deps.clock.monotonic() + deps.timings.result_retry_s
    if execution.log is not None:
        await _ship_log(deps, execution, execution.log, until)
    if execution.folder.exists():
        await _settle(deps, execution)
    settled = await _hand_in(deps, execution, waiting, until)
    # The record is deleted first: without a result in the outbox it would look interrupted.
    forget_record(deps.disk, execution.folder)
    if settled:
        deps.outbox.remove(execution.id)
    else:
        deps.outbox.abandon(execution.id)
    await put_away(deps, execution)


async def put_away(deps: Deps, execution: Execution) -> None:
    """Remove the execution from the roster and delete its folder."""
    if execution.shipping is not None:
        execution.shipping.cancel()
    forget_record(deps.disk, execution.folder)
    deps.roster.remove(execution)
    deps.signals.changed.fire()
    if execution.folder.exists():
        try:
            await remove_tree(execution.folder, lambda: deps.clock.sleep(0))
        except (OSError, DataFolderBroken) as error:
            _log.warning("execution_folder_kept", execution_id=execution.id, error=str(error))


async def _settle(deps: Deps, execution: Execution) -> None:
    ended = EndedRun(
        folder=execution.folder,
        uplink=deps.open_uplink(execution.id, execution.epoch),
        patience=RetryPolicy(RESULTS.first_s, RESULTS.longest_s, deps.timings.result_retry_s),
        data=deps.disk.path,
        mask=deps.mask,
    )
    for executor in deps.executors.values():
        await executor.settle(ended)


async def _ship_log(deps: Deps, execution: Execution, log: ShippedLog, until: float) -> None:
    """Wait for the upload of the log while the control plane responds: its folder goes next."""
    spent = 0.0
    while not await log.drain(_LOOK_EVERY_S):
        if deps.signals.contact_at is not None:
            spent += _LOOK_EVERY_S
        if spent >= deps.config.ship_logs_s or deps.clock.monotonic() >= until:
            _log.warning("log_incomplete", execution_id=execution.id)
            return


async def _hand_in(deps: Deps, execution: Execution, waiting: WaitingResult, until: float) -> bool:
    """Send the result until it is settled; return False if there was no response for too long."""
    attempt = 0
    while deps.clock.monotonic() < until:
        try:
            await _send_result(deps, waiting)
        except IdentityRefused:
            raise
        except Problem as problem:
            status = problem.status if isinstance(problem, RemoteProblem) else 0
            if problem.code in _SETTLED or (status in _UNREADABLE and not waiting.outcome.outputs):
                _note_refusal(deps, execution, problem)
                return True
            if status in _UNREADABLE:
                plain = _simplify(waiting.outcome, problem)
                waiting = deps.outbox.put(waiting.execution_id, waiting.epoch, plain)
                continue
            await _wait_before_retry(deps, attempt, problem)
            attempt += 1
        else:
            deps.audit.write("result_acknowledged", execution_id=execution.id)
            return True
    deps.audit.write("result_abandoned", execution_id=execution.id)
    return False


async def _send_result(deps: Deps, waiting: WaitingResult) -> None:
    result = Result(epoch=waiting.epoch, outcome=waiting.outcome)
    await deps.session.call(lambda token: deps.api.hand_in(token, waiting.execution_id, result))


async def _wait_before_retry(deps: Deps, attempt: int, problem: Problem) -> None:
    """Wait before the next attempt; after an outage, results are sent soon but spread out."""
    pause = RESULTS.choose_delay(deps.randomness, attempt, problem)
    began = deps.clock.monotonic()
    await wait_first(deps.clock, pause, deps.signals.back.wait())
    left = pause - (deps.clock.monotonic() - began)
    if left > 0:
        await deps.clock.sleep(min(left, _BACK_WITHIN_S * deps.randomness.fraction()))


def _simplify(outcome: Outcome, problem: Problem) -> Outcome:
    """Return a simpler failure in place of a result that the control plane rejects."""
    return outcome.model_copy(
        update={
            "state": OutcomeState.FAILED,
            "reason": Reason.OUTPUTS_INVALID,
            "message": _explain_outputs(problem),
            "outputs": {},
        }
    )


def _explain_outputs(problem: Problem) -> str:
    message = f"the control plane did not take the outputs: {problem.message}. {problem.advice}"
    return message.strip()[:MESSAGE_CHARS]


def _note_refusal(deps: Deps, execution: Execution, problem: Problem) -> None:
    _log.warning("result_refused", execution_id=execution.id, code=problem.code)
    deps.audit.write(
        "result_refused", execution_id=execution.id, code=problem.code, message=problem.message
    )
