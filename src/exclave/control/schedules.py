"""Schedules: crons of actions and scans for drift. A tick is taken in the transaction it causes.

A tick that nobody could take (all servers were down) happens once, late; one whose last run has
not ended is left out, and the schedule says so.
"""

from datetime import datetime

from exclave.base.errors import Problem
from exclave.base.logs import Log
from exclave.control.cron import find_next
from exclave.control.deps import Deps
from exclave.control.install_schedules import ACTION
from exclave.control.install_workflows import Request, WorkflowKind, begin_install_workflow
from exclave.domain.identity import OrgId
from exclave.domain.workflows import WorkflowId, WorkflowState
from exclave.storage import schedules, workflows
from exclave.storage.database import AnyRow, Tx

log = Log("schedules")

_BY = "schedule"
_BATCH = 100
_LOOK_S = 5.0


async def fire_schedules(deps: Deps) -> datetime | None:
    """Take all ticks that are due; tell when the next one is."""

    def fire(tx: Tx) -> datetime | None:
        for row in schedules.list_due(tx, _BATCH):
            _fire(tx, deps, row)
        return schedules.read_next(tx)

    return await deps.db.write(fire)


def _fire(tx: Tx, deps: Deps, row: AnyRow) -> None:
    org = OrgId(row.org_id)
    if not schedules.take_tick(tx, row, find_next(row.cron, tx.now)):
        return
    if _is_running(tx, org, row.last_workflow_id):
        note = {"note": "the last run had not ended: this tick was left out"}
        schedules.update_schedule(tx, org, row.id, note)
        return
    try:
        kind, request = _make_request(row)
        workflow = begin_install_workflow(tx, deps, org, _BY, row.install_id, kind, request)
    except Problem as problem:
        schedules.update_schedule(tx, org, row.id, {"note": problem.message})
    else:
        values = {"last_workflow_id": workflow, "note": ""}
        schedules.update_schedule(tx, org, row.id, values)


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


async def run_schedules(deps: Deps) -> None:
    """Sleep until the next tick is due, or until a schedule changes."""
    with deps.hub.watch("schedules") as watch:
        while True:
            try:
                due = await fire_schedules(deps)
            except Exception as error:  # noqa: BLE001 - the edge of a background task
                log.error("schedules_failed", exc=error)
                due = None
            left = _LOOK_S if due is None else (due - deps.clock.now()).total_seconds()
            await watch.wait(max(0.05, min(left, _LOOK_S)))
