"""Recovery at start: delivers waiting results and ends executions that a crash interrupted."""

from exclave.base.logs import Log, bind
from exclave.runner.executions.deps import Deps
from exclave.runner.executions.execution import finish, settle_on_failure
from exclave.runner.executions.outbox import WaitingResult
from exclave.runner.executions.records import ExecutionRecord, has_begun, read_record
from exclave.runner.executions.result_delivery import bind_sender, deliver, put_away
from exclave.runner.executions.roster import Execution, Phase
from exclave.runner.outcomes import end_by_stop
from exclave.runner.processes.cell import close_folder
from exclave.wire.jobs import Reason

_log = Log("runner.recovery")

_KILL_TRIES = 12
_KILL_PAUSE_S = 5.0


def recover(deps: Deps) -> None:
    """Add unfinished executions to the roster before the first request reports what is alive."""
    waiting = {pending.execution_id: pending for pending in deps.outbox.list_waiting()}
    for result in waiting.values():
        _recover_result(deps, result)
    for folder in deps.disk.list_executions():
        close_folder(folder)
        if folder.name in waiting:
            continue
        record = read_record(folder)
        if record is not None and has_begun(folder):
            _recover_work(deps, record)
        else:
            # Nothing ran: the offer expires, or its absence from the roster proves that it stopped.
            execution = Execution(folder.name, 0, mutating=False, folder=folder)
            deps.spawn(put_away(deps, execution), f"cleaning {folder.name}")


def _recover_result(deps: Deps, waiting: WaitingResult) -> None:
    folder = deps.disk.find_execution(waiting.execution_id)
    execution = Execution(
        waiting.execution_id, waiting.epoch, mutating=False, folder=folder, phase=Phase.ENDED
    )
    deps.roster.add(execution)
    deps.audit.write("result_found", execution_id=execution.id)
    deps.spawn(_deliver_again(deps, execution, waiting), f"result {execution.id}")


def _recover_work(deps: Deps, record: ExecutionRecord) -> None:
    folder = deps.disk.find_execution(record.execution_id)
    execution = Execution(
        record.execution_id, record.epoch, record.mutating, folder, phase=Phase.RUNNING
    )
    execution.stop.request(Reason.RUNNER_RESTARTED, 0.0)
    deps.roster.add(execution)
    deps.audit.write("unfinished_found", execution_id=execution.id, job_id=record.job_id)
    deps.spawn(_end_interrupted(deps, execution), f"leftovers {execution.id}")


async def _deliver_again(deps: Deps, execution: Execution, waiting: WaitingResult) -> None:
    with bind(execution_id=execution.id):
        if waiting.outcome.log_end > 0 and read_record(execution.folder) is not None:
            await _open_log(deps, execution)
            if execution.log is not None:
                await execution.log.close()
        await deliver(deps, execution, waiting)


async def _end_interrupted(deps: Deps, execution: Execution) -> None:
    with bind(execution_id=execution.id), settle_on_failure(deps, execution):
        message = "the runner was restarted while this ran; what was left of it has been ended"
        if not await _end_leftovers(deps, execution):
            message = "the runner was restarted; it is not certain that nothing of this still runs"
        await _open_log(deps, execution)
        end, digest = 0, ""
        if execution.log is not None:
            execution.log.writer.system(message)
            end, digest = await execution.log.close()
        outcome = end_by_stop(Reason.RUNNER_RESTARTED, message)
        outcome = outcome.model_copy(update={"log_end": end, "log_sha256": digest})
        await finish(deps, execution, outcome)


async def _end_leftovers(deps: Deps, execution: Execution) -> bool:
    """Kill leftover processes; until they are certainly gone, the execution counts as alive."""
    for attempt in range(_KILL_TRIES):
        if await deps.kill_leftovers(execution.folder, deps.clock):
            deps.audit.write("leftovers_killed", execution_id=execution.id, tries=attempt + 1)
            return True
        await deps.clock.sleep(_KILL_PAUSE_S)
    deps.audit.write("leftovers_uncertain", execution_id=execution.id)
    return False


async def _open_log(deps: Deps, execution: Execution) -> None:
    try:
        log = deps.open_log(execution.folder, execution.id, bind_sender(deps, execution))
    except (OSError, ValueError) as error:
        _log.error("log_not_recovered", exc=error)
        return
    execution.log = log
    execution.shipping = deps.spawn(log.run(), f"log {execution.id}")
