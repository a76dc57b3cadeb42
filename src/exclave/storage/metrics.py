"""Queries over all orgs, for figures about the whole instance."""

from collections.abc import Sequence

from sqlalchemy import func, select

from exclave.domain.workflows import WorkflowState
from exclave.storage.database import AnyRow, Tx
from exclave.storage.runners import ACTIVE
from exclave.storage.tables import runners, workflows


def count_running_workflows(tx: Tx) -> int:
    """Count workflows that have not ended."""
    running = select(func.count()).where(workflows.c.state == WorkflowState.RUNNING)
    return int(tx.run(running).scalar_one())


def list_active_runners(tx: Tx) -> Sequence[AnyRow]:
    """List what active runners last told of themselves."""
    columns = (runners.c.seen_at, runners.c.due_at, runners.c.cause, runners.c.stats)
    return tx.all(select(*columns).where(runners.c.state == ACTIVE))
