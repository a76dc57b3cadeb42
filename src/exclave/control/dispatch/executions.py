"""Requests of a runner about its executions: start, renew, hand in the result."""

from dataclasses import dataclass, replace

from exclave.base.digests import digest_json
from exclave.base.errors import NotFound, Unavailable
from exclave.base.logs import Log
from exclave.control.deps import Deps
from exclave.control.dispatch.completion import (
    ResultDetails,
    end_execution,
    end_interrupted,
    end_stopped,
    withdraw_offers,
)
from exclave.control.dispatch.direct_offers import DirectOffer
from exclave.control.dispatch.offers import find_active
from exclave.control.dispatch.presence import expect_next
from exclave.control.install_state.reported_outputs import OutputsInvalid
from exclave.domain.executions import Execution, OpenExecution, ResultReceipt
from exclave.domain.identity import RunnerIdentity
from exclave.domain.jobs import (
    ExecutionId,
    ExecutionState,
    Job,
    OutcomeState,
    Reason,
    StaleRequest,
    Superseded,
    end_by_result,
)
from exclave.storage import executions, jobs, runners
from exclave.storage.engine.database import StatementFailed, Tx
from exclave.storage.executions import OPEN, STARTED, Expected
from exclave.storage.jobs import StartedJob
from exclave.wire.runner import (
    Outcome,
    Renew,
    RenewReply,
    Result,
    ResultReply,
    Start,
    StartReply,
)

log = Log("executions")

_MESSAGE = 4000
"""Maximum length of a result's message, in characters."""
_BEFORE_START = frozenset({Reason.ENVELOPE_REFUSED, Reason.KIND_UNSUPPORTED, Reason.CANCELLED})
"""Reasons for which an offer may end without having been started."""


async def start_execution(
    deps: Deps, who: RunnerIdentity, execution: ExecutionId, request: Start
) -> StartReply:
    """Permit an execution to start; a repeated request gets the same answer."""

    def start(tx: Tx) -> StartReply:
        job = executions.start(
            tx, who.org, who.runner, (execution, request.epoch), boot=request.boot, no=request.no
        )
        started: StartedJob | Job | None
        if job is not None:
            started = jobs.run_job(tx, who.org, job)
        else:
            find_active(tx, who)
            own = _find_own(tx, who, execution)
            if not _is_started_here(own, request):
                raise Superseded(f"execution {execution} is not yours to start")
            started = jobs.find_job(tx, who.org, own.job_id)
        if started is None:
            raise _JobEnded
        tx.wake(f"workflow:{started.workflow_id}", f"job:{started.id}")
        return StartReply(cancel=started.cancel_requested_at is not None)

    try:
        return await deps.db.write(start, key=who.queue)
    except _JobEnded:
        # Cancelled while it was being offered: the lanes need not wait for the offer to expire.
        await deps.db.write(lambda tx: _withdraw(tx, deps, who, execution), key=who.queue)
        raise Superseded(f"the job of execution {execution} has ended") from None


class _JobEnded(Exception):  # noqa: N818 - carries a fact out of a transaction that it undoes
    """The job was cancelled at the moment at which it was offered."""


def _withdraw(tx: Tx, deps: Deps, who: RunnerIdentity, execution: ExecutionId) -> None:
    withdraw_offers(tx, deps, [_find_own(tx, who, execution)])


async def renew_executions(deps: Deps, who: RunnerIdentity, request: Renew) -> RenewReply:
    """Renew the leases of executions; return for each whether it goes on, stops or was replaced."""

    def renew(tx: Tx) -> RenewReply:
        busy = bool(request.executions)
        if not runners.note_renewal(
            tx,
            who.org,
            who.runner,
            boot=request.boot,
            no=request.no,
            due=expect_next(tx, deps, busy=busy),
            stats=request.stats.model_dump(),
        ):
            find_active(tx, who)
            raise StaleRequest("a newer renewal of this runner was seen already")
        open_ones = executions.list_open(tx, who.org, who.runner)
        alive = [item.id for item in request.executions]
        end_stopped(tx, deps, open_ones, request.boot, request.no, alive)
        held = [(ExecutionId(item.id), item.epoch) for item in request.executions]
        renewed = executions.renew(tx, who.org, who.runner, held)
        by_id: dict[str, OpenExecution] = {execution.id: execution for execution in open_ones}
        verdicts = {
            item.id: _verdict_of(by_id.get(item.id), item.epoch, renewed=item.id in renewed)
            for item in request.executions
        }
        renew_s = deps.parked_polls.renew_s(deps.timings, busy=busy)
        return RenewReply.model_validate({"verdicts": verdicts, "renew_s": renew_s})

    patient = not request.executions and deps.parked_polls.may_wait(deps.timings)
    return await deps.db.write(renew, key=who.queue, patient=patient)


async def hand_in(
    deps: Deps, who: RunnerIdentity, execution: ExecutionId, result: Result
) -> ResultReply:
    """Record the result of an execution exactly once; the same result may be sent again.

    Outputs of a result may make it impossible to apply to the install. The result must be recorded
    all the same, because a job that never ends holds its lanes. So it is tried three times: as it
    is, as a failure without outputs, and with only the job and its step (`bare`).
    """
    digest = digest_json(result.model_dump(mode="json"))
    given = _Given(result.epoch, result.outcome, digest)
    try:
        return await _record(deps, who, execution, given)
    except _BrokenEnding as broken:
        failed = _fail(result.outcome, _explain(broken, who, execution))
    given = replace(given, outcome=failed)
    try:
        return await _record(deps, who, execution, given)
    except _BrokenEnding as broken:
        _explain(broken, who, execution)
    return await _record(deps, who, execution, replace(given, bare=True))


@dataclass(frozen=True, slots=True)
class _Given:
    """A result to record."""

    epoch: int
    outcome: Outcome
    digest: str
    """Of the result as the runner sent it, which it may send again."""
    bare: bool = False


class _BrokenEnding(Exception):  # noqa: N818 - carries an error out of the transaction it undoes
    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error


async def _record(
    deps: Deps, who: RunnerIdentity, execution: ExecutionId, given: _Given
) -> ResultReply:
    def record(tx: Tx) -> ResultReply | Superseded:
        direct_offer = DirectOffer(tx, deps, who.org, who.queue)
        own = _find_own(tx, who, execution)
        if own.result_digest == given.digest:
            return ResultReply(recorded=True)
        if own.epoch != given.epoch or not _end_unbroken(tx, deps, own, given):
            if _find_own(tx, who, execution).result_digest == given.digest:
                return ResultReply(recorded=True)  # a copy of the request was first
            executions.keep_late_result(
                tx, who.org, execution, given.outcome.model_dump(mode="json")
            )
            return Superseded(f"execution {execution} has ended already")
        direct_offer.finish()
        return ResultReply(recorded=True)

    return await deps.db.write(record, key=who.queue)


def _end_unbroken(tx: Tx, deps: Deps, execution: Execution, given: _Given) -> bool:
    try:
        return _end(tx, deps, execution, given)
    except (StatementFailed, Unavailable):
        raise
    except Exception as error:
        raise _BrokenEnding(error) from error


def _explain(broken: _BrokenEnding, who: RunnerIdentity, execution: ExecutionId) -> str:
    """Return why a result could not be applied; unexpected errors are logged as well."""
    error = broken.error
    if isinstance(error, OutputsInvalid):
        return error.message
    log.error(
        "result_broken",
        exc=error,
        org_id=who.org,
        queue_id=who.queue,
        runner_id=who.runner,
        execution_id=execution,
    )
    return f"what it handed in cannot be worked in ({type(error).__name__})"


def _fail(outcome: Outcome, why: str) -> Outcome:
    """Return a result without outputs; a success becomes a failure."""
    message = f"{why}. {outcome.message}".strip()[:_MESSAGE]
    bare = outcome.model_copy(update={"message": message, "outputs": {}})
    if outcome.state is not OutcomeState.SUCCEEDED:
        return bare
    failed = {"state": OutcomeState.FAILED, "reason": Reason.OUTPUTS_INVALID}
    return bare.model_copy(update=failed)


def _end(tx: Tx, deps: Deps, execution: Execution, given: _Given) -> bool:
    outcome = given.outcome
    details = ResultDetails(
        message=outcome.message,
        exit_code=outcome.exit_code,
        outputs=outcome.outputs,
        receipt=ResultReceipt(given.digest, outcome.log_end, outcome.log_sha256),
        bare=given.bare,
    )
    expected = _find_expected(outcome)
    if outcome.state is OutcomeState.INTERRUPTED:
        return end_interrupted(tx, deps, execution, outcome.reason, expected, details)
    ending = end_by_result(
        outcome.state,
        outcome.reason,
        mutating=execution.mutating,
        attempts=0,
        timings=deps.timings,
    )
    return end_execution(tx, deps, execution, ending, expected, details)


def _find_expected(outcome: Outcome) -> Expected:
    """Return the state that an execution must have: few results are possible before its start."""
    needs_start = outcome.reason not in _BEFORE_START or outcome.state is OutcomeState.SUCCEEDED
    return STARTED if needs_start else OPEN


def _find_own(tx: Tx, who: RunnerIdentity, execution: ExecutionId) -> Execution:
    own = executions.find_execution(tx, who.org, execution)
    if own is None or own.runner_id != who.runner:
        raise NotFound("there is no such execution")
    return own


def _is_started_here(execution: Execution, request: Start) -> bool:
    return (
        execution.state is ExecutionState.RUNNING
        and execution.epoch == request.epoch
        and execution.boot == request.boot
    )


def _verdict_of(execution: OpenExecution | None, epoch: int, *, renewed: bool) -> str:
    if execution is None or execution.epoch != epoch:
        return "superseded"
    if not renewed and execution.state is not ExecutionState.OFFERED:
        return "superseded"
    return "cancel" if execution.cancel_requested_at is not None else "ok"
