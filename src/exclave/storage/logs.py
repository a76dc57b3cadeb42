"""Queries for the index of log segments."""

from collections.abc import Sequence

from sqlalchemy import delete, insert, select

from exclave.domain.identity import OrgId
from exclave.domain.jobs import ExecutionId
from exclave.storage.database import AnyRow, Tx
from exclave.storage.tables import executions, jobs, log_segments


def add_segment(
    tx: Tx, org: OrgId, execution: ExecutionId, *, start: int, end: int, blob: str
) -> None:
    """Index a stored segment."""
    row = {"org_id": org, "execution_id": execution, "start": start, "end": end, "blob": blob}
    tx.run(insert(log_segments).values(**row, at=tx.now))


def list_segments(
    tx: Tx, org: OrgId, execution: ExecutionId, *, offset: int = 0, limit: int = 1_000_000
) -> Sequence[AnyRow]:
    """List the segments that hold anything from `offset` on, in order."""
    where = (
        log_segments.c.org_id == org,
        log_segments.c.execution_id == execution,
        log_segments.c.end > offset,
    )
    return tx.all(select(log_segments).where(*where).order_by(log_segments.c.start).limit(limit))


def replace_segments(
    tx: Tx, org: OrgId, execution: ExecutionId, starts: Sequence[int], *, end: int, blob: str
) -> bool:
    """Put one segment in the place of several; false if they are no longer all there."""
    where = (
        log_segments.c.org_id == org,
        log_segments.c.execution_id == execution,
        log_segments.c.start.in_(starts),
    )
    if tx.run(delete(log_segments).where(*where)).rowcount != len(starts):
        return False
    add_segment(tx, org, execution, start=starts[0], end=end, blob=blob)
    return True


def list_executions(tx: Tx, org: OrgId, queue: str, *, before: str, limit: int) -> Sequence[AnyRow]:
    """List executions of a queue that have a log, newest first, with their jobs' steps."""
    where = [executions.c.org_id == org, executions.c.queue_id == queue, executions.c.log_bytes > 0]
    if before:
        where.append(executions.c.id <= before)
    return tx.all(
        select(executions.c.id, executions.c.job_id, jobs.c.step_name)
        .join(jobs, (jobs.c.org_id == executions.c.org_id) & (jobs.c.id == executions.c.job_id))
        .where(*where)
        .order_by(executions.c.id.desc())
        .limit(limit)
    )
