"""Fire timers, expire gates, and advance workflows whose wake-up was lost."""

from datetime import datetime, timedelta

from exclave.control import chores
from exclave.control.chores import RowWorker, count_rest
from exclave.control.deps import Deps
from exclave.control.progress.advance import WorkflowEvent, advance
from exclave.domain.workflows import StepKind
from exclave.flow.events import Answered, Denied
from exclave.storage import workflows
from exclave.storage.engine.database import AnyRow, Tx
from exclave.storage.workflows import Key

TIMERS, UNMOVED = "timers", "unmoved"
"""The names of the chores."""
_BATCH = 200
_AGAIN_S = 60.0
"""How long a timer is put off that could not be worked in."""
_AFTER_FAILURE_S = 1.0
_UNMOVED_S = 60.0


async def ring_timers(deps: Deps, worker: RowWorker) -> float:
    """Run one round; return when the next one is due."""
    failed, due = await fire_due(deps, worker)
    return count_rest(deps, due, least_s=_AFTER_FAILURE_S if failed else 0.0)


async def fire_due(
    deps: Deps, worker: RowWorker | None = None
) -> tuple[list[AnyRow], datetime | None]:
    """Fire the timers and expire the gates that are due.

    Returns which of them failed, and when the next one is due.
    """
    rows = await deps.db.read(lambda tx: workflows.list_due(tx, _BATCH))

    async def fire(row: AnyRow) -> None:
        event = WorkflowEvent(row.org_id, row.workflow_id, _event_of(row))
        answers = await deps.db.write(lambda tx: advance(tx, deps, [event]), key=row.org_id)
        if answers[0] is not None:
            await _put_off(deps, row)

    failed: list[AnyRow] = []
    if rows:
        worker = worker or RowWorker(deps, TIMERS)
        failed = await worker.work_off(rows, _name_step, fire)
        for row in failed:
            await _put_off(deps, row)
    return failed, await deps.db.read(workflows.next_due)


async def _put_off(deps: Deps, row: AnyRow) -> None:
    """Postpone steps that failed, so that others come first: due steps are listed by time."""

    def put_off(tx: Tx) -> None:
        later = tx.now + timedelta(seconds=_AGAIN_S)
        workflows.put_off(tx, (row.org_id, row.workflow_id), row.position, later)

    await deps.db.write(put_off, key=row.org_id)


def _event_of(row: AnyRow) -> Answered | Denied:
    if row.kind == StepKind.GATE:
        return Denied(row.position, row.digest, reason="expired", attempt=row.attempt)
    return Answered(row.position, row.attempt)


def _name_step(row: AnyRow) -> str:
    return f"{row.workflow_id}/{row.position}"


async def move_unmoved(deps: Deps, worker: RowWorker) -> float:
    """Advance workflows that have not moved for a while: a wake-up may have been lost."""
    keys = await deps.db.read(
        lambda tx: workflows.list_unmoved(tx, tx.now - timedelta(seconds=_UNMOVED_S), _BATCH)
    )

    async def move(key: Key) -> None:
        def look(tx: Tx) -> None:
            advance(tx, deps, [WorkflowEvent(*key)])
            workflows.note_looked(tx, [key])

        await deps.db.write(look, key=key[0])

    failed = await worker.work_off(keys, lambda key: key[1], move)
    if failed:
        await deps.db.write(lambda tx: workflows.note_looked(tx, failed))
    return 0.0 if len(keys) == _BATCH else chores.PACE_S
