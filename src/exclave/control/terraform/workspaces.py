"""Terraform states in the Control API: headers and resource addresses, versions, locks."""

from exclave.base.errors import Conflict, NotFound
from exclave.control.access import require_on
from exclave.control.audit import record
from exclave.control.deps import Deps
from exclave.domain.identity import InstallId, QueueId, Right, User
from exclave.domain.lanes import LaneState, conflict
from exclave.domain.terraform import StateLock, StateVersion
from exclave.storage import executions, queues, tf_states
from exclave.storage.engine.database import Tx
from exclave.wire.model import Page
from exclave.wire.states import StateResource
from exclave.wire.terraform import TfLockReply, TfStateReply, TfWorkspaceDetail, TfWorkspaceReply

_VERSIONS = 200


async def list_workspaces(deps: Deps, user: User, install: InstallId) -> Page[TfWorkspaceReply]:
    """List the workspaces of an install, each with its newest state and its lock."""

    def find(tx: Tx) -> Page[TfWorkspaceReply]:
        queue = find_queue(tx, user, install, Right.READ)
        locks = {row.workspace: row for row in tf_states.list_locks(tx, user.org, queue)}
        newest = {row.workspace: row for row in tf_states.list_newest(tx, user.org, queue)}
        items = [
            TfWorkspaceReply(
                workspace=name,
                newest=_show_state(newest.get(name)),
                lock=_show_lock(locks.get(name)),
            )
            for name in sorted({*locks, *newest})
        ]
        return Page[TfWorkspaceReply](items=items)

    return await deps.db.read(find)


async def show_workspace(
    deps: Deps, user: User, install: InstallId, workspace: str, version: int | None
) -> TfWorkspaceDetail:
    """Return a state, the newest or an older version, with a list of all versions."""

    def find(tx: Tx) -> TfWorkspaceDetail:
        queue = find_queue(tx, user, install, Right.READ)
        shown = (
            tf_states.find_newest(tx, user.org, queue, workspace)
            if version is None
            else tf_states.find_version(tx, user.org, queue, workspace, version)
        )
        lock = tf_states.find_lock(tx, user.org, queue, workspace)
        if shown is None and version is not None:
            raise miss_version(workspace, version)
        if shown is None and lock is None:
            raise NotFound(
                f"there is no state of `{workspace}`",
                hint="`exclave installs tf-state list` shows those that there are.",
            )
        versions = tf_states.list_versions(tx, user.org, queue, workspace, limit=_VERSIONS)
        return TfWorkspaceDetail(
            workspace=workspace,
            newest=_show_state(shown),
            lock=_show_lock(lock),
            versions=[_show_header(row) for row in versions],
        )

    return await deps.db.read(find)


async def unlock_workspace(
    deps: Deps, user: User, install: InstallId, workspace: str, reason: str
) -> TfWorkspaceDetail:
    """Remove a lock that an ended execution left behind."""

    def unlock(tx: Tx) -> None:
        queue = find_queue(tx, user, install, Right.OPERATE)
        row = tf_states.find_lock(tx, user.org, queue, workspace)
        if row is None:
            raise NotFound(
                f"the state of `{workspace}` is not locked",
                hint="`exclave installs tf-state list` shows which are.",
            )
        if not tf_states.break_lock(tx, user.org, queue, workspace):
            raise Conflict(
                f"execution {row.execution_id} holds the lock and still runs",
                hint="Cancel its job; if its machine is gone, use `jobs declare-lost`.",
            )
        record(
            tx,
            deps,
            user.org,
            user.name,
            "tf_state_unlocked",
            f"{install}/{workspace}",
            reason=reason,
            lock_id=row.lock_id,
        )

    await deps.db.write(unlock)
    return await show_workspace(deps, user, install, workspace, None)


def find_queue(tx: Tx, user: User, install: InstallId, right: Right) -> QueueId:
    """Return the queue of an install on which the user has this right."""
    queue = QueueId(install)
    if queues.find_queue(tx, user.org, queue) is None:
        raise NotFound("there is no such install")
    require_on(tx, user, right, install, noun="install")
    return queue


def miss_version(workspace: str, version: int) -> NotFound:
    """Return the problem that a version does not exist."""
    return NotFound(
        f"there is no version {version} of the state of `{workspace}`",
        hint="`exclave installs tf-state versions` lists what there is.",
    )


def refuse_busy(tx: Tx, user: User, queue: QueueId, workspace: str) -> None:
    """Refuse to change a state while a job holds its lane; the caller has locked the queue."""
    for lane in queues.list_lanes(tx, user.org, queue):
        if lane.state == LaneState.BUSY and conflict(lane.name, workspace):
            held_by = lane.execution_id
            holder = None if held_by is None else executions.find_execution(tx, user.org, held_by)
            job = "a job" if holder is None else f"job {holder.job_id}"
            raise Conflict(
                f"{job} works on lane `{lane.name}`",
                hint="Wait until it has ended: it may write a newer state.",
            )


def _show_header(row: StateVersion) -> TfStateReply:
    return TfStateReply(
        workspace=row.workspace,
        version=row.version,
        serial=row.serial,
        lineage=row.lineage,
        sha256=row.sha256,
        size=row.size,
        resources=[],
        execution_id=row.execution_id,
        at=row.at,
        restored_from=row.restored_from,
    )


def _show_state(row: StateVersion | None) -> TfStateReply | None:
    if row is None:
        return None
    resources = [StateResource.model_validate(resource) for resource in row.resources]
    return _show_header(row).model_copy(update={"resources": resources})


def _show_lock(row: StateLock | None) -> TfLockReply | None:
    if row is None:
        return None
    return TfLockReply(
        workspace=row.workspace,
        lock_id=row.lock_id,
        operation=row.info.get("operation", ""),
        who=row.info.get("who", ""),
        execution_id=row.execution_id,
        at=row.at,
        stale=row.is_stale,
    )
