"""Queries over all orgs, for figures about the whole instance."""

from collections.abc import Sequence

from sqlalchemy import func, select, update

from exclave.domain.workflows import WorkflowState
from exclave.storage.engine.database import AnyRow, Tx
from exclave.storage.runners import ACTIVE
from exclave.storage.tables.core import cluster, runners, workflows


def count_running_workflows(tx: Tx) -> int:
    """Count workflows that have not ended."""
    running = select(func.count()).where(workflows.c.state == WorkflowState.RUNNING)
    return int(tx.run(running).scalar_one())


def count_running_by_org(tx: Tx) -> dict[str, int]:
    """Count the workflows of each org that have not ended."""
    running = select(workflows.c.org_id, func.count().label("running"))
    rows = tx.all(
        running.where(workflows.c.state == WorkflowState.RUNNING).group_by(workflows.c.org_id)
    )
    return {row.org_id: int(row.running) for row in rows}


def write_probe(tx: Tx) -> None:
    """Update a row without changing it, to see whether the database accepts writes."""
    tx.run(update(cluster).values(name=cluster.c.name))


def list_active_runners(tx: Tx) -> Sequence[AnyRow]:
    """List what active runners last told of themselves."""
    columns = (runners.c.seen_at, runners.c.due_at, runners.c.cause, runners.c.stats)
    return tx.all(select(*columns).where(runners.c.state == ACTIVE))
