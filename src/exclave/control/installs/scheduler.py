"""Schedules: crons of actions, scans for drift, and health checks after deploys.

A tick is taken in the transaction it causes.

A tick that nobody could take (all servers were down) happens once, late; one whose last run has
not ended is left out, and the schedule says so.
"""

from datetime import datetime

from exclave.base.errors import Kind, Problem
from exclave.base.json_values import text_or_empty
from exclave.control.chores import RowWorker, count_rest
from exclave.control.deps import Deps
from exclave.control.install_state.cron import find_next
from exclave.control.install_state.schedules import find_tick
from exclave.control.installs.start_workflow import Request, WorkflowKind, begin_install_workflow
from exclave.domain.four_eyes import NOBODY, Author
from exclave.domain.identity import OrgId, QueueId
from exclave.domain.installs import Health, component_of
from exclave.domain.lanes import SANDBOX
from exclave.domain.schedules import Schedule, ScheduleKind
from exclave.domain.workflows import WorkflowId, WorkflowState
from exclave.storage import install_parts, installs, queues, schedules, workflows
from exclave.storage.engine.database import StatementFailed, Tx

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
    due = await deps.db.read(lambda tx: schedules.list_due(tx, _BATCH))
    if due:
        worker = worker or RowWorker(deps, SCHEDULES)
        await worker.work_off(
            due, lambda schedule: schedule.id, lambda schedule: _fire(deps, schedule)
        )
    return await deps.db.read(schedules.read_next)


async def _fire(deps: Deps, schedule: Schedule) -> None:
    try:
        await deps.db.write(lambda tx: _begin(tx, deps, schedule), key=schedule.install_id)
    except Problem as problem:
        if problem.kind is Kind.UNAVAILABLE:
            raise
        note = problem.message
        await deps.db.write(lambda tx: _leave_out(tx, schedule, note), key=schedule.install_id)
    except StatementFailed:
        raise
    except Exception:
        await deps.db.write(lambda tx: _leave_out(tx, schedule, _BROKEN), key=schedule.install_id)
        raise


def _begin(tx: Tx, deps: Deps, schedule: Schedule) -> None:
    """Advance a schedule and start its workflow; a problem undoes both."""
    org, install = schedule.org, schedule.install_id
    installs.lock_install(tx, org, install)  # in the order of those who change schedules
    queues.lock_queue(tx, org, QueueId(install))
    if schedule.kind is ScheduleKind.HEALTH:
        if schedules.claim_once(tx, schedule.org, schedule):
            kind, request = _make_request(schedule)
            begin_install_workflow(tx, deps, org, _BY, install, kind, request)
        return
    if not schedules.claim_tick(tx, schedule, find_next(schedule.cron, tx.now)):
        return
    if _is_running(tx, org, schedule.last_workflow_id):
        note = "the last run had not ended: this tick was left out"
        schedules.set_note(tx, org, schedule.id, note)
        return
    kind, request = _make_request(schedule)
    workflow = begin_install_workflow(tx, deps, org, _BY, install, kind, request)
    schedules.set_workflow(tx, org, schedule.id, workflow)


def _leave_out(tx: Tx, schedule: Schedule, note: str) -> None:
    """Advance a schedule without starting its workflow, and store the reason."""
    if schedule.kind is ScheduleKind.HEALTH:
        if schedules.claim_once(tx, schedule.org, schedule):
            _note_unchecked(tx, schedule, note)
        return
    if schedules.claim_tick(tx, schedule, find_tick(schedule.cron, tx.now)[0]):
        schedules.set_note(tx, schedule.org, schedule.id, note)


def _note_unchecked(tx: Tx, schedule: Schedule, why: str) -> None:
    """Store at the part that nobody could look at it."""
    install_parts.save_health(
        tx,
        schedule.org,
        schedule.install_id,
        schedule.subject,
        Health.UNKNOWN,
        f"it was not checked: {why}",
        workflow=text_or_empty(schedule.detail.get("deployed_by")),
    )


def _make_request(schedule: Schedule) -> tuple[WorkflowKind, Request]:
    if schedule.kind is ScheduleKind.ACTION:
        return WorkflowKind.ACTION_RUN, Request(action=schedule.subject, trigger="cron")
    if schedule.kind is ScheduleKind.HEALTH:
        name = component_of(schedule.subject)
        return WorkflowKind.HEALTH_CHECK, Request(
            components=(name,), deployed_by=text_or_empty(schedule.detail.get("deployed_by"))
        )
    if schedule.subject == SANDBOX:
        return WorkflowKind.DRIFT_SCAN, Request(sandbox=True, plan_only=True)
    name = component_of(schedule.subject)
    return WorkflowKind.DRIFT_SCAN, Request(components=(name,), plan_only=True)


def _is_running(tx: Tx, org: OrgId, workflow: WorkflowId | None) -> bool:
    if workflow is None:
        return False
    row = workflows.find_workflow(tx, org, workflow)
    return row is not None and row.state == WorkflowState.RUNNING
