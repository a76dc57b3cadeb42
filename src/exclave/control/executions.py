"""What a runner tells about its executions: start, renew, hand in the result."""

from exclave.base.digests import digest_json
from exclave.base.errors import NotFound
from exclave.control.deps import Deps
from exclave.control.endings import Account, end_execution, end_interrupted, end_stopped
from exclave.control.handover import Handover
from exclave.control.offers import find_active
from exclave.control.presence import expect_next
from exclave.domain.identity import RunnerIdentity
from exclave.domain.jobs import (
    ExecutionId,
    ExecutionState,
    OutcomeState,
    Reason,
    StaleRequest,
    Superseded,
    end_by_result,
)
from exclave.storage import executions, jobs, runners
from exclave.storage.database import AnyRow, Tx
from exclave.wire.runner import (
    Outcome,
    Renew,
    RenewReply,
    Result,
    ResultReply,
    Start,
    StartReply,
)

_BEFORE_START = frozenset({Reason.ENVELOPE_REFUSED, Reason.KIND_UNSUPPORTED, Reason.CANCELLED})
"""Why an offer may end without having been started."""


async def start_execution(
    deps: Deps, who: RunnerIdentity, execution: ExecutionId, request: Start
) -> StartReply:
    """Give leave to begin; asking again after a lost reply gets the same answer."""

    def start(tx: Tx) -> StartReply:
        job = executions.start(
            tx, who.org, who.runner, (execution, request.epoch), boot=request.boot, no=request.no
        )
        if job is not None:
            found = jobs.run_job(tx, who.org, job)
        else:
            row = _find_own(tx, who, execution)
            if not _is_started_here(row, request):
                raise Superseded(f"execution {execution} is not yours to start")
            found = jobs.find_job(tx, who.org, row.job_id)
        if found is None:
            raise NotFound("there is no such job")
        tx.wake(f"workflow:{found.workflow_id}", f"job:{found.id}")
        return StartReply(cancel=found.cancel_requested_at is not None)

    return await deps.db.write(start, key=who.queue)


async def renew_executions(deps: Deps, who: RunnerIdentity, request: Renew) -> RenewReply:
    """Keep executions alive, and learn which of them are to stop."""

    def renew(tx: Tx) -> RenewReply:
        busy = bool(request.executions)
        if not runners.note_renewal(
            tx, who.org, who.runner, boot=request.boot, no=request.no,
            due=expect_next(tx, deps, busy=busy), stats=request.stats.model_dump(),
        ):  # fmt: skip
            find_active(tx, who)
            raise StaleRequest("a newer renewal of this runner was seen already")
        open_ones = executions.list_open(tx, who.org, who.runner)
        alive = [item.id for item in request.executions]
        end_stopped(tx, deps, open_ones, request.boot, request.no, alive)
        held = [(ExecutionId(item.id), item.epoch) for item in request.executions]
        renewed = executions.renew(tx, who.org, who.runner, held)
        by_id = {row.id: row for row in open_ones}
        verdicts = {
            item.id: _judge(by_id.get(item.id), item.epoch, item.id in renewed)
            for item in request.executions
        }
        renew_s = deps.fleet.renew_s(deps.timings, busy=busy)
        return RenewReply.model_validate({"verdicts": verdicts, "renew_s": renew_s})

    patient = not request.executions and deps.fleet.may_wait(deps.timings)
    return await deps.db.write(renew, key=who.queue, patient=patient)


async def hand_in(
    deps: Deps, who: RunnerIdentity, execution: ExecutionId, result: Result
) -> ResultReply:
    """Record how an execution ended, exactly once; the same result again is fine."""
    digest = digest_json(result.model_dump(mode="json"))

    def record(tx: Tx) -> ResultReply | Superseded:
        handover = Handover(tx, deps, who.org, who.queue)
        row = _find_own(tx, who, execution)
        if row.result_digest == digest:
            return ResultReply(recorded=True)
        if not _may_end(row, result) or not _end(tx, deps, row, result.outcome, digest):
            executions.keep_late_result(
                tx, who.org, execution, result.outcome.model_dump(mode="json")
            )
            return Superseded(f"execution {execution} has ended already")
        handover.finish()
        return ResultReply(recorded=True)

    return await deps.db.write(record, key=who.queue)


def _end(tx: Tx, deps: Deps, row: AnyRow, outcome: Outcome, digest: str) -> bool:
    account = Account(
        message=outcome.message, exit_code=outcome.exit_code, outputs=outcome.outputs,
        row={"result_digest": digest, "log_end": outcome.log_end,
             "log_sha256": outcome.log_sha256},
    )  # fmt: skip
    if outcome.state is OutcomeState.INTERRUPTED:
        return end_interrupted(tx, deps, row, outcome.reason, account)
    ending = end_by_result(
        outcome.state, outcome.reason, mutating=row.mutating, attempts=0, timings=deps.timings
    )
    return end_execution(tx, deps, row, ending, account)


def _may_end(row: AnyRow, result: Result) -> bool:
    if row.state == ExecutionState.ENDED or row.epoch != result.epoch:
        return False
    if row.state == ExecutionState.RUNNING:
        return True
    return (
        result.outcome.reason in _BEFORE_START
        and result.outcome.state is not OutcomeState.SUCCEEDED
    )


def _find_own(tx: Tx, who: RunnerIdentity, execution: ExecutionId) -> AnyRow:
    row = executions.find_execution(tx, who.org, execution)
    if row is None or row.runner_id != who.runner:
        raise NotFound("there is no such execution")
    return row


def _is_started_here(row: AnyRow, request: Start) -> bool:
    return bool(
        row.state == ExecutionState.RUNNING
        and row.epoch == request.epoch
        and row.boot == request.boot
    )


def _judge(row: AnyRow | None, epoch: int, renewed: bool) -> str:  # noqa: FBT001 - a fact of the row
    if row is None or row.epoch != epoch:
        return "superseded"
    if not renewed and row.state != ExecutionState.OFFERED:
        return "superseded"
    return "cancel" if row.cancel_requested_at is not None else "ok"
