"""Schedules: crons of actions and scans for drift. A tick is taken in the transaction it causes.

A tick that nobody could take (all servers were down) happens once, late; one whose last run has
not ended is left out, and the schedule says so.
"""

from datetime import datetime

from exclave.base.errors import Kind, Problem
from exclave.control.chores import RowWorker, count_rest
from exclave.control.deps import Deps
from exclave.control.install_state.cron import find_next
from exclave.control.install_state.schedules import ACTION, find_tick
from exclave.control.installs.start_workflow import Request, WorkflowKind, begin_install_workflow
from exclave.domain.four_eyes import NOBODY, Author
from exclave.domain.identity import OrgId
from exclave.domain.workflows import WorkflowId, WorkflowState
from exclave.storage import installs, queues, schedules, workflows
from exclave.storage.engine.database import AnyRow, StatementFailed, Tx

SCHEDULES = "schedules"
"""The name of the chore."""
_BY = Author("schedule", NOBODY)
_BATCH = 100
_LEAST_S = 0.05
_BROKEN = "the run could not be started because of an unexpected error; the server's log has it"


async def run_due(deps: Deps, worker: RowWorker) -> float:
    """Run all due ticks; return when the next one is due."""
    return count_rest(deps, await fire_schedules(deps, worker), least_s=_LEAST_S)


async def fire_schedules(deps: Deps, worker: RowWorker | None = None) -> datetime | None:
    """Run all due ticks, each in its own transaction; return when the next one is due."""
    rows = await deps.db.read(lambda tx: schedules.list_due(tx, _BATCH))
    if rows:
        worker = worker or RowWorker(deps, SCHEDULES)
        await worker.work_off(rows, lambda row: str(row.id), lambda row: _fire(deps, row))
    return await deps.db.read(schedules.read_next)


async def _fire(deps: Deps, row: AnyRow) -> None:
    try:
        await deps.db.write(lambda tx: _begin(tx, deps, row), key=row.install_id)
    except Problem as problem:
        if problem.kind is Kind.UNAVAILABLE:
            raise
        note = problem.message
        await deps.db.write(lambda tx: _leave_out(tx, row, note), key=row.install_id)
    except StatementFailed:
        raise
    except Exception:
        await deps.db.write(lambda tx: _leave_out(tx, row, _BROKEN), key=row.install_id)
        raise


def _begin(tx: Tx, deps: Deps, row: AnyRow) -> None:
    """Advance a schedule and start its workflow; a problem undoes both."""
    org = OrgId(row.org_id)
    installs.lock_install(tx, org, row.install_id)  # in the order of those who change schedules
    queues.lock_queue(tx, org, row.install_id)
    if not schedules.claim_tick(tx, row, find_next(row.cron, tx.now)):
        return
    if _is_running(tx, org, row.last_workflow_id):
        note = {"note": "the last run had not ended: this tick was left out"}
        schedules.update_schedule(tx, org, row.id, note)
        return
    kind, request = _make_request(row)
    workflow = begin_install_workflow(tx, deps, org, _BY, row.install_id, kind, request)
    values = {"last_workflow_id": workflow, "note": ""}
    schedules.update_schedule(tx, org, row.id, values)


def _leave_out(tx: Tx, row: AnyRow, note: str) -> None:
    """Advance a schedule without starting its workflow, and store the reason."""
    if schedules.claim_tick(tx, row, find_tick(row.cron, tx.now)[0]):
        schedules.update_schedule(tx, OrgId(row.org_id), row.id, {"note": note})


def _make_request(row: AnyRow) -> tuple[WorkflowKind, Request]:
    if row.kind == ACTION:
        return WorkflowKind.ACTION_RUN, Request(action=row.subject, trigger="cron")
    if row.subject == "sandbox":
        return WorkflowKind.DRIFT_SCAN, Request(sandbox=True, plan_only=True)
    name = row.subject.removeprefix("component:")
    return WorkflowKind.DRIFT_SCAN, Request(components=(name,), plan_only=True)


def _is_running(tx: Tx, org: OrgId, workflow: str | None) -> bool:
    if workflow is None:
        return False
    row = workflows.find_workflow(tx, org, WorkflowId(workflow))
    return row is not None and row.state == WorkflowState.RUNNING
