"""Turns on lanes: workflows that need the same lane run in the order of their creation."""

from collections.abc import Sequence

from exclave.base.errors import Conflict
from exclave.domain.identity import OrgId, QueueId
from exclave.domain.lanes import conflict
from exclave.domain.workflows import Workflow, WorkflowId
from exclave.flow.decide import lanes_wanted
from exclave.storage import tickets
from exclave.storage.engine.database import Tx
from exclave.storage.workflows import Loaded

MOST_TICKETS = 5_000
"""Maximum number of tickets of one queue: one for each lane that a workflow changes."""


class Crowded(Conflict):
    """Too many workflows that change the same install wait for each other."""

    code = "crowded"
    hint = "Wait until some of them have ended, or cancel those that are not needed any more."


def refuse_crowd(tx: Tx, org: OrgId, queue: QueueId) -> None:
    """Refuse a workflow if too many wait: each event of the queue reads all their tickets."""
    if tickets.count_tickets(tx, org, queue) > MOST_TICKETS:
        raise Crowded("too many workflows wait for the lanes of this install")


def find_blocked(tx: Tx, loaded: Loaded, value: Workflow) -> frozenset[str]:
    """Return the lanes that earlier workflows still need; take tickets first if there are none.

    A workflow has one number for all its lanes, so two can never wait for each other.
    """
    wanted = lanes_wanted(value)
    if not wanted:
        return frozenset()
    line = tickets.list_tickets(tx, loaded.org, loaded.queue)
    mine = {ticket.lane: ticket.seq for ticket in line if ticket.workflow_id == value.id}
    if not wanted <= mine.keys():
        tickets.drop_tickets(tx, loaded.org, loaded.queue, value.id, mine)
        seq = tickets.next_ticket(tx, loaded.org, loaded.queue)
        tickets.add_tickets(tx, loaded.org, loaded.queue, value.id, wanted, seq)
    else:
        seq = min(mine.values())
    return frozenset(
        ticket.lane for ticket in line if ticket.workflow_id != value.id and ticket.seq < seq
    )


def release_turns(tx: Tx, loaded: Loaded, after: Workflow) -> Sequence[WorkflowId]:
    """Release turns that are no longer needed; return the workflows that may go on."""
    if not lanes_wanted(loaded.value):
        return []
    line = tickets.list_tickets(tx, loaded.org, loaded.queue)
    wanted = lanes_wanted(after)
    spare = [t.lane for t in line if t.workflow_id == after.id and t.lane not in wanted]
    if not spare:
        return []
    tickets.drop_tickets(tx, loaded.org, loaded.queue, after.id, spare)
    waiting = dict.fromkeys(
        ticket.workflow_id
        for ticket in line
        if ticket.workflow_id != after.id and any(conflict(ticket.lane, lane) for lane in spare)
    )
    return list(waiting)
