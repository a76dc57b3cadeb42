"""Queries over all orgs, for figures about the whole instance."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import func, select, update

from exclave.base.json_values import JsonObject
from exclave.domain.identity import OrgId
from exclave.domain.runners import RunnerState
from exclave.domain.workflows import WorkflowState
from exclave.storage.engine.database import Tx
from exclave.storage.tables.identity import cluster
from exclave.storage.tables.runners import runners
from exclave.storage.tables.work import workflows


def count_running_workflows(tx: Tx) -> int:
    """Count workflows that have not ended."""
    running = select(func.count()).where(workflows.c.state == WorkflowState.RUNNING)
    return int(tx.run(running).scalar_one())


class _RunningCount(NamedTuple):
    org_id: OrgId
    running: int


def count_running_by_org(tx: Tx) -> dict[OrgId, int]:
    """Count the workflows of each org that have not ended."""
    counted = (
        select(workflows.c.org_id, func.count().label("running"))
        .where(workflows.c.state == WorkflowState.RUNNING)
        .group_by(workflows.c.org_id)
    )
    return {row.org_id: row.running for row in tx.all(counted, _RunningCount)}


def write_probe(tx: Tx) -> None:
    """Update a row without changing it, to see whether the database accepts writes."""
    tx.run(update(cluster).values(name=cluster.c.name))


class ActiveRunner(NamedTuple):
    """What an active runner last said about itself."""

    seen_at: datetime | None
    due_at: datetime | None
    cause: str
    stats: JsonObject


def list_active_runners(tx: Tx) -> Sequence[ActiveRunner]:
    """List what active runners last said about themselves."""
    columns = (runners.c[name] for name in ActiveRunner._fields)
    return tx.all(select(*columns).where(runners.c.state == RunnerState.ACTIVE), ActiveRunner)
