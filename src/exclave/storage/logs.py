"""Queries for the index of log segments."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Integer, bindparam, delete, not_, or_, select, update

from exclave.domain.identity import OrgId
from exclave.domain.jobs import ExecutionId, ExecutionState
from exclave.storage.database import AnyRow, Tx
from exclave.storage.statements import Prepared
from exclave.storage.tables import executions, jobs, log_segments


def add_segment(
    tx: Tx, org: OrgId, execution: ExecutionId, *, start: int, end: int, blob: str
) -> None:
    """Index a stored segment."""
    row = {"org_id": org, "execution_id": execution, "start": start, "end": end, "blob": blob}
    tx.insert_each(log_segments, [{**row, "at": tx.now}])


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
    tx: Tx, org: OrgId, execution: ExecutionId, old: Sequence[AnyRow], *, blob: str
) -> bool:
    """Put one segment in the place of several; false, and no change, if they are not all there.

    Another server may have done the same: then one of its own begins where the first of them did.
    """
    where = (
        log_segments.c.org_id == org,
        log_segments.c.execution_id == execution,
        log_segments.c.start.in_([segment.start for segment in old]),
    )
    there = tx.all(select(log_segments.c.blob).where(*where).with_for_update())
    if {row.blob for row in there} != {segment.blob for segment in old}:
        return False
    tx.run(delete(log_segments).where(*where))
    add_segment(tx, org, execution, start=old[0].start, end=old[-1].end, blob=blob)
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


_WHOLE = executions.c.log_bytes >= executions.c.log_end
_UNMERGED = Prepared(
    select(executions.c.org_id, executions.c.id)
    .where(executions.c.state == ExecutionState.ENDED, not_(executions.c.log_merged))
    .where(or_(_WHOLE, executions.c.ended_at < bindparam("before")))
    .order_by(executions.c.ended_at)
    .limit(bindparam("most", type_=Integer))
)


def list_unmerged(tx: Tx, before: datetime, limit: int) -> Sequence[AnyRow]:
    """List executions of all orgs whose logs are whole, or ended before that moment anyway."""
    return tx.all(_UNMERGED, before=before, most=limit)


def note_merged(tx: Tx, org: OrgId, execution: ExecutionId) -> None:
    """Remember that a log needs no more merging."""
    mine = (executions.c.org_id == org, executions.c.id == execution)
    tx.run(update(executions).where(*mine).values(log_merged=True))
