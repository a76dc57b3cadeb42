"""Terraform states in the Runner API: sealed bytes, written under a running execution."""

from collections.abc import AsyncIterable, AsyncIterator, Callable
from typing import TypeVar

from exclave.base.errors import Conflict, InvalidInput, NotFound, TooLarge
from exclave.control.deps import Deps
from exclave.control.limits import quotas
from exclave.control.limits.measured_stream import Measured
from exclave.domain.identity import RunnerIdentity
from exclave.domain.jobs import ExecutionId, ExecutionState, Superseded
from exclave.domain.quotas import QuotaExceeded, Stored
from exclave.domain.terraform import (
    LockDescription,
    LockHeld,
    NewStateVersion,
    StateLock,
    StateRefused,
    StateVersion,
    StoredResource,
)
from exclave.storage import executions, tf_states
from exclave.storage.engine.database import Tx
from exclave.storage.engine.group_commit import Raced
from exclave.storage.executions import Held
from exclave.wire.states import (
    MAX_ATTACHMENT,
    LockInfo,
    LockState,
    StateHeader,
    StateReply,
    UnlockState,
)

T = TypeVar("T")


async def read_state(
    deps: Deps, who: RunnerIdentity, execution: ExecutionId, epoch: int, workspace: str
) -> tuple[StateHeader, AsyncIterator[bytes]] | None:
    """Return the newest state of a workspace of the runner's install."""

    def find(tx: Tx) -> tuple[StateHeader, str] | None:
        _check_running(tx, who, (execution, epoch))
        row = tf_states.find_newest(tx, who.org, who.queue, workspace)
        return None if row is None else (_make_header(tx, who, row), row.blob)

    result = await deps.db.read(find)
    if result is None:
        return None
    header, blob = result
    return header, deps.blobs.read(blob)


async def write_state(
    deps: Deps,
    who: RunnerIdentity,
    execution: ExecutionId,
    epoch: int,
    workspace: str,
    lock_id: str,
    header: StateHeader,
    chunks: AsyncIterable[bytes],
) -> StateReply:
    """Store a version of a state: first the blob, then its row. It may be sent again."""
    if header.sealed_serial is not None:
        raise InvalidInput("`sealed_serial` is for answers: only people restore an older version")
    held = (execution, epoch)
    stored = await deps.db.read(lambda tx: _find_same(tx, who, held, workspace, header))
    if stored is not None:
        return StateReply(version=stored)
    blob = f"tf-states/{who.org}/{who.queue}/{deps.ids.new('tfs')}"
    sealed = Measured(chunks, MAX_ATTACHMENT)
    await deps.blobs.put_stream(blob, sealed)
    new = make_version(header, sealed.size, blob)

    def add(tx: Tx) -> StateReply:
        executions.find_execution(tx, who.org, execution, lock=True)
        version = tf_states.add_version(
            tx, who.org, who.runner, held, who.queue, workspace, lock_id, new
        )
        if version is None:
            raise _explain_refusal(tx, who, held, workspace, lock_id, header)
        _count(tx, deps, who, execution, workspace, sealed.size)
        return StateReply(version=version)

    return await _write_or_delete(deps, who, add, blob)


async def lock_state(
    deps: Deps, who: RunnerIdentity, execution: ExecutionId, body: LockState
) -> None:
    """Lock a workspace; the lock of an execution that has ended counts as free."""
    held = (execution, body.epoch)

    def lock(tx: Tx) -> None:
        executions.find_execution(tx, who.org, execution, lock=True)
        info = _describe(body.lock)
        if not tf_states.acquire_lock(
            tx, who.org, who.runner, held, who.queue, body.workspace, body.lock.id, info
        ):
            _check_writer(tx, who, held, body.workspace)
            raise _lock_held_by(tf_states.find_lock(tx, who.org, who.queue, body.workspace))

    await deps.db.write(lock, key=who.queue)


async def unlock_state(
    deps: Deps, who: RunnerIdentity, execution: ExecutionId, body: UnlockState
) -> None:
    """Release a lock, if it is still held."""
    held = (execution, body.epoch)

    def unlock(tx: Tx) -> None:
        if tf_states.drop_lock(
            tx, who.org, who.runner, held, who.queue, body.workspace, body.lock_id
        ):
            return
        _check_writer(tx, who, held, body.workspace)
        row = tf_states.find_lock(tx, who.org, who.queue, body.workspace)
        if row is not None:
            raise _lock_held_by(row)

    await deps.db.write(unlock, key=who.queue)


def make_version(header: StateHeader, size: int, blob: str) -> NewStateVersion:
    """Return the version that a header describes, with its sealed bytes in a blob."""
    return NewStateVersion(
        serial=header.serial,
        lineage=header.lineage,
        sha256=header.sha256,
        size=size,
        blob=blob,
        resources=[
            StoredResource(address=resource.address, type=resource.type, id=resource.id)
            for resource in header.resources
        ],
    )


def _describe(lock: LockInfo) -> LockDescription:
    return LockDescription(
        id=lock.id,
        operation=lock.operation,
        info=lock.info,
        who=lock.who,
        version=lock.version,
        created=lock.created,
    )


def _make_header(tx: Tx, who: RunnerIdentity, row: StateVersion) -> StateHeader:
    """Return the header of a version; a restored one still has its original serial inside."""
    header = StateHeader.model_validate(
        {
            "serial": row.serial,
            "lineage": row.lineage,
            "sha256": row.sha256,
            "resources": row.resources,
        }
    )
    if row.restored_from is None:
        return header
    key = (who.org, who.queue, row.workspace, row.restored_from)
    older = tf_states.find_version(tx, *key)
    return header if older is None else header.model_copy(update={"sealed_serial": older.serial})


async def _write_or_delete(deps: Deps, who: RunnerIdentity, add: Callable[[Tx], T], blob: str) -> T:
    try:
        return await deps.db.write(add, key=who.queue)
    except (Superseded, StateRefused, LockHeld, Conflict, Raced, QuotaExceeded, TooLarge):
        await deps.blobs.delete(blob)
        raise


def _count(
    tx: Tx, deps: Deps, who: RunnerIdentity, execution: ExecutionId, workspace: str, size: int
) -> None:
    """Count a stored version against the quota.

    A state that is not stored is work that nobody knows of: so a running apply may pass the quota,
    and only twice of it is the end. The org begins nothing new meanwhile.
    """
    most = deps.quotas.tf_states_per_execution_bytes
    if most and tf_states.sum_sizes(tx, who.org, who.queue, workspace, execution) > most:
        raise TooLarge(f"the states of an execution have {most} bytes at most", limit=most)
    quotas.reserve(tx, deps, who.org, Stored.TF_STATES, size, 1, slack=2)


def _find_same(
    tx: Tx, who: RunnerIdentity, held: Held, workspace: str, header: StateHeader
) -> int | None:
    """Return the version that an earlier copy of this request stored."""
    _check_writer(tx, who, held, workspace)
    row = tf_states.find_newest(tx, who.org, who.queue, workspace)
    if row is None or row.sha256 != header.sha256 or row.serial != header.serial:
        return None
    return row.version


def _explain_refusal(
    tx: Tx, who: RunnerIdentity, held: Held, workspace: str, lock_id: str, header: StateHeader
) -> StateRefused | LockHeld:
    _check_writer(tx, who, held, workspace)
    lock = tf_states.find_lock(tx, who.org, who.queue, workspace)
    if lock is None:
        return StateRefused(f"the state of `{workspace}` is not locked by this execution")
    if (lock.execution_id, lock.lock_id) != (held[0], lock_id):
        return _lock_held_by(lock)
    newest = tf_states.find_newest(tx, who.org, who.queue, workspace)
    if newest is not None and newest.lineage != header.lineage:
        return StateRefused(f"the state of `{workspace}` has another lineage")
    return StateRefused(f"the state of `{workspace}` has a newer serial than {header.serial}")


def _check_running(tx: Tx, who: RunnerIdentity, held: Held) -> None:
    row = executions.find_execution(tx, who.org, held[0])
    if row is None or row.runner_id != who.runner:
        raise NotFound("there is no such execution")
    if row.epoch != held[1] or row.state != ExecutionState.RUNNING:
        raise Superseded(f"execution {held[0]} is not running")


def _check_writer(tx: Tx, who: RunnerIdentity, held: Held, workspace: str) -> None:
    _check_running(tx, who, held)
    if not executions.is_writer(tx, who.org, who.runner, held, lane=workspace):
        raise Superseded(f"execution {held[0]} does not hold `{workspace}`")


def _lock_held_by(row: StateLock | None) -> LockHeld:
    if row is None:
        return LockHeld("the lock was taken and given back in between; ask again")
    return LockHeld(
        f"the state is locked by execution {row.execution_id}",
        lock=row.info,
        execution_id=row.execution_id,
    )
