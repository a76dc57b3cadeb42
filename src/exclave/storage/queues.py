"""Queries for queues and their lanes."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import (
    BigInteger,
    Text,
    bindparam,
    exists,
    insert,
    literal,
    select,
    update,
)

from exclave.domain.identity import OrgId, QueueId, QueueKind
from exclave.domain.jobs import ExecutionId
from exclave.domain.lanes import SANDBOX, LaneState
from exclave.domain.queues import Lane, Queue
from exclave.storage.engine.database import Tx
from exclave.storage.engine.statements import Deferred, Prepared
from exclave.storage.engine.types import Instant
from exclave.storage.tables.identity import cluster
from exclave.storage.tables.work import lanes, queues, tickets


def add_queue(tx: Tx, org: OrgId, queue: QueueId, kind: QueueKind) -> None:
    """Create a queue."""
    tx.run(insert(queues).values(org_id=org, id=queue, kind=kind))


_MINE = (queues.c.org_id == bindparam("org"), queues.c.id == bindparam("queue"))
_FIND = Prepared(select(*(queues.c[name] for name in Queue._fields)).where(*_MINE), Queue)


def find_queue(tx: Tx, org: OrgId, queue: QueueId) -> Queue | None:
    """Find a queue of this org."""
    return tx.first(_FIND, org=org, queue=queue)


def find_build_queue(tx: Tx, org: OrgId) -> QueueId:
    """Find the org's one build queue."""
    where = (queues.c.org_id == org, queues.c.kind == QueueKind.BUILD)
    return QueueId(tx.run(select(queues.c.id).where(*where)).scalar_one())


class EpochCounter(NamedTuple):
    """What the next epoch of a queue is made of: the generation, and the counter below it."""

    counter: int
    generation: int


class _Counter(NamedTuple):
    counter: int


class _Generation(NamedTuple):
    generation: int


_LOCK = Prepared(select(queues.c.counter).where(*_MINE).with_for_update(), _Counter)
_GENERATION = Prepared(select(cluster.c.generation), _Generation)
_CLAIM = Prepared(
    select(queues.c.counter, select(cluster.c.generation).scalar_subquery().label("generation"))
    .where(*_MINE)
    .with_for_update(),
    EpochCounter,
)


def lock_queue(tx: Tx, org: OrgId, queue: QueueId) -> None:
    """Lock a queue for this transaction, before anything else that it asks from now on."""
    tx.execute_later(_LOCK, org=org, queue=queue)


def read_counter(tx: Tx, org: OrgId, queue: QueueId) -> int:
    """Lock a queue for this transaction; return the counter of its epochs."""
    return tx.one(_LOCK, org=org, queue=queue).counter


def ask_for_claims(tx: Tx, org: OrgId, queue: QueueId) -> Deferred[EpochCounter]:
    """Lock a queue for this transaction; ask for the counter and the generation of its epochs."""
    return tx.select_later(_CLAIM, org=org, queue=queue)


def set_counter(tx: Tx, org: OrgId, queue: QueueId, counter: int) -> None:
    """Store the counter of a locked queue."""
    tx.update_each(queues, [{"org_id": org, "id": queue, "counter": counter}])


def read_generation(tx: Tx) -> int:
    """Return the generation of epochs, which every restore raises."""
    return tx.one(_GENERATION).generation


class _LaneName(NamedTuple):
    name: str


_LANES_OF = (lanes.c.org_id == bindparam("org"), lanes.c.queue_id == bindparam("queue"))
_LANES = Prepared(
    select(*(lanes.c[name] for name in Lane._fields)).where(*_LANES_OF).order_by(lanes.c.name), Lane
)
_BUSY = Prepared(select(lanes.c.name).where(*_LANES_OF, lanes.c.state != LaneState.FREE), _LaneName)


def list_lanes(tx: Tx, org: OrgId, queue: QueueId) -> Sequence[Lane]:
    """List the lanes of a queue that were ever used."""
    return tx.all(_LANES, org=org, queue=queue)


_ADD = Prepared(
    insert(lanes).from_select(
        ["org_id", "queue_id", "name", "epoch", "state", "reason", "changed_at"],
        select(
            queues.c.org_id,
            queues.c.id,
            bindparam("lane", type_=Text),
            bindparam("new_epoch", type_=BigInteger),
            literal(LaneState.BUSY, Text),
            literal("", Text),
            bindparam("now", type_=Instant),
        )
        .where(*_MINE)
        .where(
            ~exists().where(
                lanes.c.org_id == queues.c.org_id,
                lanes.c.queue_id == queues.c.id,
                lanes.c.name == bindparam("lane"),
            )
        ),
    )
)
_TAKE = Prepared(
    update(lanes)
    .where(lanes.c.org_id == bindparam("org"), lanes.c.queue_id == bindparam("queue"))
    .where(lanes.c.name == bindparam("lane"))
    .values(
        state=LaneState.BUSY,
        epoch=bindparam("new_epoch"),
        reason="",
        execution_id=bindparam("new_holder"),
        changed_at=bindparam("now"),
    )
)


def occupy_lanes(
    tx: Tx, org: OrgId, queue: QueueId, taken: Sequence[tuple[str, int, ExecutionId]]
) -> None:
    """Mark lanes (name, epoch, holder) as busy; the caller holds the queue's lock."""
    for name, epoch, execution in taken:
        at = {"org": org, "queue": queue, "lane": name}
        new = {"new_epoch": epoch, "new_holder": execution, "now": tx.now}
        tx.execute_later(_ADD, **at, **new)
        tx.execute_later(_TAKE, **at, **new)


_LEAVE = Prepared(
    update(lanes)
    .where(lanes.c.org_id == bindparam("org"), lanes.c.queue_id == bindparam("queue"))
    .where(lanes.c.execution_id == bindparam("execution"), lanes.c.state == LaneState.BUSY)
    .values(
        state=bindparam("new_state"),
        reason=bindparam("new_reason"),
        execution_id=bindparam("new_holder"),
        changed_at=bindparam("now"),
    )
)


def leave_lanes(
    tx: Tx, org: OrgId, queue: QueueId, execution: ExecutionId, state: LaneState, reason: str
) -> None:
    """End an execution's hold on its lanes: free again, or in need of a look."""
    holder = None if state is LaneState.FREE else execution
    at = {"org": org, "queue": queue, "execution": execution}
    left = {"new_state": state, "new_reason": reason, "new_holder": holder, "now": tx.now}
    tx.execute_later(_LEAVE, **at, **left)


def release_lane(tx: Tx, org: OrgId, queue: QueueId, name: str, epoch: int) -> bool:
    """Free a lane that needed a look, under a new epoch; return whether it did need one."""
    where = (lanes.c.org_id == org, lanes.c.queue_id == queue, lanes.c.name == name)
    freed = tx.run(
        update(lanes)
        .where(*where, lanes.c.state == LaneState.NEEDS_RECONCILE)
        .values(state=LaneState.FREE, epoch=epoch, execution_id=None, reason="", changed_at=tx.now)
    )
    return freed.rowcount == 1


class _WantedLane(NamedTuple):
    org_id: OrgId
    queue_id: QueueId
    lane: str


def block_wanted_lanes(tx: Tx, generation: int, reason: str) -> int:
    """Set to `needs_reconcile` every lane, of all orgs, that a workflow still wants to work on."""
    epoch = generation << 32
    columns = (tickets.c[name] for name in _WantedLane._fields)
    wanted = tx.all(select(*columns).distinct(), _WantedLane)
    state = LaneState.NEEDS_RECONCILE
    for row in wanted:
        mine = {"org_id": row.org_id, "queue_id": row.queue_id, "name": row.lane}
        fresh = {**mine, "epoch": epoch, "state": state, "reason": reason, "changed_at": tx.now}
        tx.run(tx.insert_missing(lanes), fresh)
        _set_lane(tx, row.org_id, row.queue_id, row.lane, state=state, epoch=epoch, reason=reason)
    return len(wanted)


def list_busy_lanes(tx: Tx, org: OrgId, queue: QueueId) -> Sequence[str]:
    """List the lanes of a queue that are not free."""
    return [row.name for row in tx.all(_BUSY, org=org, queue=queue)]


def list_lanes_to_reconcile(
    tx: Tx, org: OrgId, queue: QueueId, names: Sequence[str]
) -> Sequence[str]:
    """List the lanes among these, or excluded by them, that need to be reconciled."""
    where = (
        lanes.c.org_id == org,
        lanes.c.queue_id == queue,
        lanes.c.state == LaneState.NEEDS_RECONCILE,
    )
    blocked = [lane.name for lane in tx.all(select(lanes.c.name).where(*where), _LaneName)]
    return [name for name in blocked if SANDBOX in names or name == SANDBOX or name in names]


def _set_lane(tx: Tx, org: OrgId, queue: QueueId, name: str, **values: object) -> None:
    where = (lanes.c.org_id == org, lanes.c.queue_id == queue, lanes.c.name == name)
    tx.run(update(lanes).where(*where).values(**values, changed_at=tx.now))
