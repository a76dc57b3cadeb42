"""Queries for the files that executions hand in."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Select, func, literal, select, true, update

from exclave.domain.attachments import Attachment, ListedAttachment, NewAttachment
from exclave.domain.identity import OrgId, QueueId, RunnerId
from exclave.domain.jobs import ExecutionId
from exclave.storage.engine.database import Tx
from exclave.storage.executions import Held, may_write
from exclave.storage.tables.terraform import attachments
from exclave.storage.tables.work import executions


def find_attachment(tx: Tx, org: OrgId, execution: ExecutionId, name: str) -> Attachment | None:
    """Find a file of an execution."""
    return tx.first(select(attachments).where(*_named(org, execution, name)), Attachment)


def sum_sizes(tx: Tx, org: OrgId, execution: ExecutionId) -> int:
    """Add up the files of an execution."""
    at = attachments.c
    mine = (at.org_id == org, at.execution_id == execution)
    row = tx.first(select(func.coalesce(func.sum(at.size), 0).label("size")).where(*mine))
    return 0 if row is None else int(row.size)


def put_attachment(
    tx: Tx, org: OrgId, runner: RunnerId, held: Held, new: NewAttachment, *, fenced: bool
) -> bool:
    """Add or replace a file of an execution; false if the writer may not.

    What is not fenced is evidence: the execution's own runner may hand it in after the end.
    """
    allowed = may_write(org, runner, held) if fenced else true()
    row = {
        "queue_id": new.queue_id,
        "digest": new.digest,
        "size": new.size,
        "blob": new.blob,
        "at": tx.now,
    }
    replaced = update(attachments).where(*_named(org, held[0], new.name), allowed)
    if tx.run(replaced.values(row)).rowcount == 1:
        return True
    names = {"org_id": org, "execution_id": held[0], "name": new.name, **row}
    written = [literal(value, attachments.c[key].type) for key, value in names.items()]
    chosen: Select[Any] = select(*written)
    fresh = tx.insert_missing(attachments).from_select(list(names), chosen.where(allowed))
    return tx.first(fresh.returning(attachments.c.name)) is not None


def list_named(
    tx: Tx, org: OrgId, queue: QueueId, name: str, *, limit: int
) -> Sequence[ListedAttachment]:
    """List files of one name of a queue with their executions, newest execution first."""
    query = (
        select(attachments, executions.c.job_id, executions.c.epoch)
        .join(
            executions,
            (executions.c.org_id == attachments.c.org_id)
            & (executions.c.id == attachments.c.execution_id),
        )
        .where(attachments.c.org_id == org, attachments.c.queue_id == queue)
        .where(attachments.c.name == name)
        .order_by(executions.c.epoch.desc())
        .limit(limit)
    )
    return tx.all(query, ListedAttachment)


def _named(org: OrgId, execution: ExecutionId, name: str) -> tuple[ColumnElement[bool], ...]:
    at = attachments.c
    return (at.org_id == org, at.execution_id == execution, at.name == name)
