"""Queries for the index of log segments."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import bindparam, delete, not_, or_, select, update

from exclave.domain.identity import OrgId
from exclave.domain.jobs import ExecutionId, ExecutionState
from exclave.domain.logs import LoggedExecution, LogSegment, UnmergedLog
from exclave.storage.engine.database import Tx
from exclave.storage.engine.statements import Prepared
from exclave.storage.tables.work import executions, jobs, log_segments


def add_segment(
    tx: Tx, org: OrgId, execution: ExecutionId, span: tuple[int, int], *, blob: str, stored: int
) -> None:
    """Index a blob of `stored` bytes that holds the stream from the one offset to the other."""
    at = {"org_id": org, "execution_id": execution, "start": span[0], "end": span[1]}
    tx.insert_each(log_segments, [{**at, "blob": blob, "stored": stored, "at": tx.now}])


def list_segments(
    tx: Tx, org: OrgId, execution: ExecutionId, *, offset: int, limit: int
) -> Sequence[LogSegment]:
    """List the segments that hold anything from `offset` on, in order."""
    where = (
        log_segments.c.org_id == org,
        log_segments.c.execution_id == execution,
        log_segments.c.end > offset,
    )
    columns = (log_segments.c[name] for name in LogSegment._fields)
    query = select(*columns).where(*where).order_by(log_segments.c.start).limit(limit)
    return tx.all(query, LogSegment)


class _Blob(NamedTuple):
    blob: str


def replace_segments(
    tx: Tx, org: OrgId, execution: ExecutionId, old: Sequence[LogSegment], *, blob: str, stored: int
) -> bool:
    """Put one segment in the place of several; false, and no change, if they are not all there.

    Another server may have done the same: then one of its own begins where the first of them did.
    """
    where = (
        log_segments.c.org_id == org,
        log_segments.c.execution_id == execution,
        log_segments.c.start.in_([segment.start for segment in old]),
    )
    there = tx.all(select(log_segments.c.blob).where(*where).with_for_update(), _Blob)
    if {row.blob for row in there} != {segment.blob for segment in old}:
        return False
    tx.run(delete(log_segments).where(*where))
    span = (old[0].start, old[-1].end)
    add_segment(tx, org, execution, span, blob=blob, stored=stored)
    return True


def list_executions(
    tx: Tx, org: OrgId, queue: str, *, before: str, limit: int
) -> Sequence[LoggedExecution]:
    """List executions of a queue that have a log, newest first, with their jobs' steps."""
    where = [executions.c.org_id == org, executions.c.queue_id == queue, executions.c.log_bytes > 0]
    if before:
        where.append(executions.c.id <= before)
    newest = (
        select(executions.c.id, executions.c.job_id, jobs.c.step_name)
        .join(jobs, (jobs.c.org_id == executions.c.org_id) & (jobs.c.id == executions.c.job_id))
        .where(*where)
        .order_by(executions.c.id.desc())
        .limit(limit)
    )
    return tx.all(newest, LoggedExecution)


_WHOLE = executions.c.log_bytes >= executions.c.log_end
_UNMERGED = Prepared(
    select(*(executions.c[name] for name in UnmergedLog._fields))
    .where(executions.c.state == ExecutionState.ENDED, not_(executions.c.log_merged))
    .where(or_(_WHOLE, executions.c.ended_at < bindparam("before")))
    .where(executions.c.merge_after.is_(None) | (executions.c.merge_after <= bindparam("now")))
    .where(executions.c.org_id > bindparam("after"))
    .order_by(executions.c.org_id, executions.c.ended_at)
    .limit(1),
    UnmergedLog,
)


def find_unmerged(tx: Tx, before: datetime, *, after: str) -> UnmergedLog | None:
    """Find the oldest log to merge of the next org after this one.

    A log is to be merged when it is whole, or ended before that moment anyway.
    """
    return tx.first(_UNMERGED, before=before, now=tx.now, after=after)


def claim_merge(
    tx: Tx, org: OrgId, execution: ExecutionId, *, tries: int, again_at: datetime
) -> bool:
    """Count a try to merge a log before it begins; false if another server was faster.

    What ends the server in the middle of it is then not the first thing after its restart.
    """
    mine = (executions.c.org_id == org, executions.c.id == execution)
    open_ = (not_(executions.c.log_merged), executions.c.merge_tries == tries)
    values = {"merge_tries": tries + 1, "merge_after": again_at}
    return tx.run(update(executions).where(*mine, *open_).values(values)).rowcount == 1


def note_merged_to(tx: Tx, org: OrgId, execution: ExecutionId, offset: int) -> None:
    """Store how far a log is merged; the rest can be merged at once."""
    mine = (executions.c.org_id == org, executions.c.id == execution)
    values = {"merged_to": offset, "merge_tries": 0, "merge_after": None}
    tx.run(update(executions).where(*mine).values(values))


def note_merged(tx: Tx, org: OrgId, execution: ExecutionId, offset: int) -> None:
    """Store that a log is merged; what still arrives is merged from the offset on."""
    mine = (executions.c.org_id == org, executions.c.id == execution)
    values = {"log_merged": True, "merged_to": offset, "merge_tries": 0, "merge_after": None}
    tx.run(update(executions).where(*mine).values(values))
