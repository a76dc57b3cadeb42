"""Installs and their lanes."""

from exclave.base.errors import Conflict, NotFound
from exclave.control.access import require
from exclave.control.audit import record
from exclave.control.deps import Deps
from exclave.control.pages import clamp, make_page
from exclave.domain.identity import (
    InstallId,
    QueueId,
    QueueKind,
    Right,
    User,
    allows,
    list_granted,
)
from exclave.domain.lanes import LaneState, check_lane
from exclave.storage import queues
from exclave.storage.database import AnyRow, Tx
from exclave.wire.identity import InstallReply, LaneReply, NewInstall
from exclave.wire.model import Page


async def create_install(deps: Deps, user: User, wish: NewInstall) -> InstallReply:
    """Create an install and the queue of its work."""
    require(user, Right.OPERATE)

    def create(tx: Tx) -> InstallReply:
        if queues.find_install_named(tx, user.org, wish.name) is not None:
            raise Conflict(f"there is an install named `{wish.name}` already")
        install = InstallId(deps.ids.new("ins"))
        queues.add_queue(tx, user.org, QueueId(install), QueueKind.INSTALL)
        queues.add_install(tx, user.org, install, wish.name, wish.labels)
        record(tx, deps, user.org, user.name, "install_created", install, name=wish.name)
        return InstallReply(id=install, name=wish.name, labels=wish.labels, created_at=tx.now)

    return await deps.db.write(create)


async def list_installs(deps: Deps, user: User, cursor: str, limit: int) -> Page[InstallReply]:
    """List the org's installs, or those that the caller has been given."""
    only = None if allows(user, Right.READ) else list_granted(user)
    if only == []:
        require(user, Right.READ)
    wanted = clamp(limit)
    rows = await deps.db.read(
        lambda tx: queues.list_installs(tx, user.org, cursor, wanted + 1, only)
    )
    return make_page(rows, wanted, lambda row: _show(row, []))


async def show_install(deps: Deps, user: User, install: InstallId) -> InstallReply:
    """Show an install with its lanes."""
    require(user, Right.READ, install)

    def show(tx: Tx) -> InstallReply:
        row = queues.find_install(tx, user.org, install)
        if row is None:
            raise NotFound("there is no such install")
        return _show(row, [_show_lane(r) for r in queues.list_lanes(tx, user.org, row.id)])

    return await deps.db.read(show)


async def release_lane(
    deps: Deps, user: User, install: InstallId, lane: str, reason: str
) -> InstallReply:
    """Let work on a lane go on after a person has looked at what a lost job left behind."""
    require(user, Right.OPERATE, install)
    check_lane(lane)
    queue = QueueId(install)

    def release(tx: Tx) -> None:
        if queues.find_install(tx, user.org, install) is None:
            raise NotFound("there is no such install")
        counter = queues.lock_queue(tx, user.org, queue) + 1
        epoch = queues.read_generation(tx) << 32 | counter
        if not queues.release_lane(tx, user.org, queue, lane, epoch):
            raise Conflict(
                f"lane `{lane}` needs no release",
                hint=f"Only a lane in state `{LaneState.NEEDS_RECONCILE}` is released.",
            )
        queues.set_counter(tx, user.org, queue, counter)
        record(tx, deps, user.org, user.name, "lane_released", install, lane=lane, reason=reason)
        tx.wake(f"queue:{queue}")

    await deps.db.write(release, key=queue)
    return await show_install(deps, user, install)


def _show(row: AnyRow, lanes: list[LaneReply]) -> InstallReply:
    return InstallReply(
        id=row.id, name=row.name, labels=row.labels, created_at=row.created_at, lanes=lanes
    )


def _show_lane(row: AnyRow) -> LaneReply:
    return LaneReply(
        name=row.name, state=row.state, epoch=row.epoch, execution_id=row.execution_id,
        reason=row.reason, changed_at=row.changed_at,
    )  # fmt: skip
