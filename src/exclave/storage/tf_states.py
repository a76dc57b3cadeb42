"""Queries for Terraform states and their locks; writes are fenced in the statement itself."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Integer,
    Table,
    delete,
    exists,
    func,
    literal,
    select,
    tuple_,
    update,
)

from exclave.domain.identity import OrgId, QueueId, RunnerId
from exclave.domain.jobs import ExecutionId, ExecutionState
from exclave.domain.terraform import LockDescription, NewStateVersion, StateLock, StateVersion
from exclave.storage.engine.database import Tx
from exclave.storage.executions import Held, may_write
from exclave.storage.tables.terraform import tf_locks, tf_states
from exclave.storage.tables.work import executions


def find_newest(tx: Tx, org: OrgId, queue: QueueId, workspace: str) -> StateVersion | None:
    """Find the newest version of a workspace's state."""
    newest = select(tf_states).where(*_in_states(org, queue, workspace))
    return tx.first(newest.order_by(tf_states.c.version.desc()).limit(1), StateVersion)


def find_version(
    tx: Tx, org: OrgId, queue: QueueId, workspace: str, version: int
) -> StateVersion | None:
    """Find one version of a workspace's state."""
    where = (*_in_states(org, queue, workspace), tf_states.c.version == version)
    return tx.first(select(tf_states).where(*where), StateVersion)


def list_newest(tx: Tx, org: OrgId, queue: QueueId) -> Sequence[StateVersion]:
    """List the newest version of each workspace of a queue; versions count from 1."""
    mine = (tf_states.c.org_id == org, tf_states.c.queue_id == queue)
    newest = (
        select(tf_states.c.workspace, func.max(tf_states.c.version))
        .where(*mine)
        .group_by(tf_states.c.workspace)
    )
    picked = select(tf_states).where(*mine)
    picked = picked.where(tuple_(tf_states.c.workspace, tf_states.c.version).in_(newest))
    return tx.all(picked.order_by(tf_states.c.workspace), StateVersion)


def list_versions(
    tx: Tx, org: OrgId, queue: QueueId, workspace: str, *, limit: int
) -> Sequence[StateVersion]:
    """List the versions of a workspace's state, newest first."""
    query = select(tf_states).where(*_in_states(org, queue, workspace))
    return tx.all(query.order_by(tf_states.c.version.desc()).limit(limit), StateVersion)


def add_version(
    tx: Tx,
    org: OrgId,
    runner: RunnerId,
    held: Held,
    queue: QueueId,
    workspace: str,
    lock_id: str,
    new: NewStateVersion,
) -> int | None:
    """Add a version if the writer may: its lanes are current, it holds the lock, it follows on.

    None if any of that is not so.
    """
    allowed = (
        may_write(org, runner, held, lane=workspace),
        _locked_by(org, queue, workspace, held, lock_id),
    )
    return _insert_version(tx, org, held, queue, workspace, new, *allowed)


def sum_sizes(tx: Tx, org: OrgId, queue: QueueId, workspace: str, execution: ExecutionId) -> int:
    """Add up the versions that an execution stored in a workspace."""
    mine = (*_in_states(org, queue, workspace), tf_states.c.execution_id == execution)
    row = tx.first(select(func.coalesce(func.sum(tf_states.c.size), 0).label("size")).where(*mine))
    return 0 if row is None else int(row.size)


def restore_version(
    tx: Tx, org: OrgId, held: Held, queue: QueueId, workspace: str, new: NewStateVersion
) -> int | None:
    """Add a version that an ended execution left, if it follows on; the caller has the lanes."""
    return _insert_version(tx, org, held, queue, workspace, new)


def find_lock(tx: Tx, org: OrgId, queue: QueueId, workspace: str) -> StateLock | None:
    """Find a lock, and whether the execution that took it has ended."""
    return tx.first(_LOCKS.where(*_in_locks(org, queue, workspace)), StateLock)


def list_locks(tx: Tx, org: OrgId, queue: QueueId) -> Sequence[StateLock]:
    """List the locks of a queue."""
    mine = (tf_locks.c.org_id == org, tf_locks.c.queue_id == queue)
    return tx.all(_LOCKS.where(*mine), StateLock)


def acquire_lock(
    tx: Tx,
    org: OrgId,
    runner: RunnerId,
    held: Held,
    queue: QueueId,
    workspace: str,
    lock_id: str,
    info: LockDescription,
) -> bool:
    """Acquire a lock that is free or whose execution has ended; return whether it was acquired."""
    row = {
        "lock_id": lock_id,
        "info": dict(info),
        "execution_id": held[0],
        "epoch": held[1],
        "at": tx.now,
    }
    allowed = may_write(org, runner, held, lane=workspace)
    free = exists(
        select(1)
        .select_from(executions)
        .where(executions.c.org_id == org, executions.c.id == tf_locks.c.execution_id)
        .where((executions.c.state == ExecutionState.ENDED) | (executions.c.id == held[0]))
        .correlate(tf_locks)
    )
    taken = update(tf_locks).where(*_in_locks(org, queue, workspace), free, allowed)
    if tx.run(taken.values(row)).rowcount == 1:
        return True
    names = {"org_id": org, "queue_id": queue, "workspace": workspace, **row}
    fresh = tx.insert_missing(tf_locks).from_select(
        list(names), select(*_write(tf_locks, names)).where(allowed)
    )
    return tx.first(fresh.returning(tf_locks.c.lock_id)) is not None


def drop_lock(
    tx: Tx, org: OrgId, runner: RunnerId, held: Held, queue: QueueId, workspace: str, lock_id: str
) -> bool:
    """Release a lock, if this execution holds it."""
    mine = (tf_locks.c.lock_id == lock_id, tf_locks.c.execution_id == held[0])
    allowed = may_write(org, runner, held, lane=workspace)
    dropped = delete(tf_locks).where(*_in_locks(org, queue, workspace), *mine, allowed)
    return tx.run(dropped).rowcount == 1


def break_lock(tx: Tx, org: OrgId, queue: QueueId, workspace: str) -> bool:
    """Remove a lock whose execution has ended."""
    ended = exists(
        select(1)
        .select_from(executions)
        .where(executions.c.org_id == org, executions.c.id == tf_locks.c.execution_id)
        .where(executions.c.state == ExecutionState.ENDED)
        .correlate(tf_locks)
    )
    return tx.run(delete(tf_locks).where(*_in_locks(org, queue, workspace), ended)).rowcount == 1


_LOCKS = select(tf_locks, (executions.c.state == ExecutionState.ENDED).label("is_stale")).join(
    executions,
    (executions.c.org_id == tf_locks.c.org_id) & (executions.c.id == tf_locks.c.execution_id),
)


def _in_states(org: OrgId, queue: QueueId, workspace: str) -> tuple[ColumnElement[bool], ...]:
    at = tf_states.c
    return (at.org_id == org, at.queue_id == queue, at.workspace == workspace)


def _in_locks(org: OrgId, queue: QueueId, workspace: str) -> tuple[ColumnElement[bool], ...]:
    at = tf_locks.c
    return (at.org_id == org, at.queue_id == queue, at.workspace == workspace)


def _locked_by(
    org: OrgId, queue: QueueId, workspace: str, held: Held, lock_id: str
) -> ColumnElement[bool]:
    mine = (tf_locks.c.lock_id == lock_id, tf_locks.c.execution_id == held[0])
    return exists(select(1).where(*_in_locks(org, queue, workspace), *mine))


def _insert_version(
    tx: Tx,
    org: OrgId,
    held: Held,
    queue: QueueId,
    workspace: str,
    new: NewStateVersion,
    *allowed: ColumnElement[bool],
) -> int | None:
    """Add a version if it follows on and the conditions hold; return its number, or None."""
    row = {
        "org_id": org,
        "queue_id": queue,
        "workspace": workspace,
        "serial": new.serial,
        "lineage": new.lineage,
        "sha256": new.sha256,
        "size": new.size,
        "blob": new.blob,
        "resources": list(new.resources),
        "epoch": held[1],
        "execution_id": held[0],
        "at": tx.now,
        "restored_from": new.restored_from,
    }
    latest = select(func.coalesce(func.max(tf_states.c.version), 0) + 1)
    version = latest.where(*_in_states(org, queue, workspace)).scalar_subquery()
    chosen = select(version.cast(Integer), *_write(tf_states, row))
    chosen = chosen.where(*allowed, ~_overtaken(org, queue, workspace, new))
    added = tf_states.insert().from_select(["version", *row], chosen).returning(tf_states.c.version)
    result = tx.first(added)
    return None if result is None else int(result.version)


def _overtaken(
    org: OrgId, queue: QueueId, workspace: str, new: NewStateVersion
) -> ColumnElement[bool]:
    """Return the condition that a stored version is as new or of another lineage."""
    clash = (tf_states.c.serial >= new.serial) | (tf_states.c.lineage != new.lineage)
    return exists(select(1).where(*_in_states(org, queue, workspace), clash))


def _write(table: Table, row: Mapping[str, object]) -> list[ColumnElement[Any]]:
    return [literal(value, table.c[name].type) for name, value in row.items()]
