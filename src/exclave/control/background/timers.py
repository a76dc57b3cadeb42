"""Fire timers, expire gates, and advance workflows whose wake-up was lost."""

from datetime import datetime, timedelta

from exclave.control import chores
from exclave.control.chores import RowWorker, count_rest
from exclave.control.deps import Deps
from exclave.control.progress.advance import advance
from exclave.control.progress.workflow_events import WorkflowEvent
from exclave.domain.workflows import StepKind, WorkflowKey
from exclave.flow.events import Answered, Denied
from exclave.storage import due_steps, workflows
from exclave.storage.due_steps import DueStep
from exclave.storage.engine.database import Tx

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
) -> tuple[list[DueStep], datetime | None]:
    """Fire the timers and expire the gates that are due.

    Returns which of them failed, and when the next one is due.
    """
    due = await deps.db.read(lambda tx: due_steps.list_due(tx, _BATCH))

    async def fire(step: DueStep) -> None:
        event = WorkflowEvent(step.org_id, step.workflow_id, _event_of(step))
        answers = await deps.db.write(lambda tx: advance(tx, deps, [event]), key=step.org_id)
        if answers[0] is not None:
            await _put_off(deps, step)

    failed: list[DueStep] = []
    if due:
        worker = worker or RowWorker(deps, TIMERS)
        failed = await worker.work_off(due, _name_step, fire)
        for step in failed:
            await _put_off(deps, step)
    return failed, await deps.db.read(due_steps.next_due)


async def _put_off(deps: Deps, step: DueStep) -> None:
    """Postpone steps that failed, so that others come first: due steps are listed by time."""

    def put_off(tx: Tx) -> None:
        later = tx.now + timedelta(seconds=_AGAIN_S)
        due_steps.put_off(tx, (step.org_id, step.workflow_id), step.position, later)

    await deps.db.write(put_off, key=step.org_id)


def _event_of(step: DueStep) -> Answered | Denied:
    if step.kind is StepKind.GATE:
        return Denied(step.position, step.digest, reason="expired", attempt=step.attempt)
    return Answered(step.position, step.attempt)


def _name_step(step: DueStep) -> str:
    return f"{step.workflow_id}/{step.position}"


async def move_unmoved(deps: Deps, worker: RowWorker) -> float:
    """Advance workflows that have not moved for a while: a wake-up may have been lost."""
    keys = await deps.db.read(
        lambda tx: workflows.list_unmoved(tx, tx.now - timedelta(seconds=_UNMOVED_S), _BATCH)
    )

    async def move(key: WorkflowKey) -> None:
        def look(tx: Tx) -> None:
            advance(tx, deps, [WorkflowEvent(*key)])
            workflows.note_looked(tx, [key])

        await deps.db.write(look, key=key[0])

    failed = await worker.work_off(keys, lambda key: key[1], move)
    if failed:
        await deps.db.write(lambda tx: workflows.note_looked(tx, failed))
    return 0.0 if len(keys) == _BATCH else chores.PACE_S
