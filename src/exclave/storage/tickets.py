"""Queries for tickets: the places of workflows in line for the lanes of a queue."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sqlalchemy import Integer, bindparam, delete, func, select, update

from exclave.domain.identity import OrgId, QueueId
from exclave.domain.queues import Ticket
from exclave.domain.workflows import WorkflowId
from exclave.storage.engine.database import Tx
from exclave.storage.engine.statements import Prepared
from exclave.storage.tables.work import queues, tickets


class _Number(NamedTuple):
    seq: int


class _Total(NamedTuple):
    total: int


_DRAW = Prepared(
    update(queues)
    .where(queues.c.org_id == bindparam("org"), queues.c.id == bindparam("queue"))
    .values(seq=queues.c.seq + 1)
    .returning(queues.c.seq),
    _Number,
)
_TICKETS = (tickets.c.org_id == bindparam("org"), tickets.c.queue_id == bindparam("queue"))
_LINE = Prepared(
    select(*(tickets.c[name] for name in Ticket._fields))
    .where(*_TICKETS)
    .order_by(tickets.c.seq, tickets.c.lane),
    Ticket,
)
_COUNT_LINE = Prepared(
    select(func.count(tickets.c.lane, type_=Integer).label("total")).where(*_TICKETS), _Total
)
_DROP = Prepared(
    delete(tickets)
    .where(*_TICKETS, tickets.c.workflow_id == bindparam("workflow"))
    .where(tickets.c.lane.in_(bindparam("names", expanding=True)))
)


def next_ticket(tx: Tx, org: OrgId, queue: QueueId) -> int:
    """Draw the next place in line; takes the queue's lock until commit."""
    return tx.one(_DRAW, org=org, queue=queue).seq


def add_tickets(
    tx: Tx, org: OrgId, queue: QueueId, workflow: WorkflowId, names: Iterable[str], seq: int
) -> None:
    """Queue up a workflow on some lanes."""
    rows = [
        {"org_id": org, "queue_id": queue, "lane": lane, "workflow_id": workflow, "seq": seq}
        for lane in sorted(names)
    ]
    tx.insert_each(tickets, rows)


def drop_tickets(
    tx: Tx, org: OrgId, queue: QueueId, workflow: WorkflowId, names: Iterable[str]
) -> None:
    """Delete tickets."""
    given = sorted(names)
    if given:
        tx.execute_later(_DROP, org=org, queue=queue, workflow=workflow, names=given)


def count_tickets(tx: Tx, org: OrgId, queue: QueueId) -> int:
    """Count all places in line of a queue."""
    return tx.one(_COUNT_LINE, org=org, queue=queue).total


def list_tickets(tx: Tx, org: OrgId, queue: QueueId) -> Sequence[Ticket]:
    """List all places in line of a queue, first come first."""
    return tx.all(_LINE, org=org, queue=queue)
