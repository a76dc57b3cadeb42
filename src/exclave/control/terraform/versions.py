"""Restore older versions of a Terraform state, each under the next serial.

The bytes stay as they were sealed, with their old serial inside. The runner raises it when it opens
them, as only it has the key.
"""

from exclave.control.audit import record
from exclave.control.deps import Deps
from exclave.control.terraform.workspaces import (
    find_queue,
    miss_version,
    refuse_busy,
    show_workspace,
)
from exclave.domain.identity import InstallId, Right, User
from exclave.domain.terraform import NewStateVersion, StateRefused, StateVersion
from exclave.storage import queues, tf_states
from exclave.storage.engine.database import Tx
from exclave.wire.terraform import TfWorkspaceDetail


async def restore_version(
    deps: Deps, user: User, install: InstallId, workspace: str, version: int, reason: str
) -> TfWorkspaceDetail:
    """Make an older version the next one. Nothing is deleted, and repeating it changes nothing."""

    def restore(tx: Tx) -> None:
        queue = find_queue(tx, user, install, Right.OPERATE)
        queues.lock_queue(tx, user.org, queue)
        refuse_busy(tx, user, queue, workspace)
        older = tf_states.find_version(tx, user.org, queue, workspace, version)
        newest = tf_states.find_newest(tx, user.org, queue, workspace)
        if older is None or newest is None:
            raise miss_version(workspace, version)
        if older.version == newest.version:
            message = f"version {version} is the state of `{workspace}` already"
            raise StateRefused(message, hint="Nothing has to be restored.")
        if older.origin == newest.origin:
            return
        new = _make_version(older, newest)
        held = (older.execution_id, older.epoch)
        if tf_states.restore_version(tx, user.org, held, queue, workspace, new) is None:
            raise StateRefused(
                f"version {version} cannot follow: it is of another lineage",
                hint="It knows other resources: import what is missing, see `installs orphans`.",
            )
        record(
            tx,
            deps,
            user.org,
            user.name,
            "tf_state_restored",
            f"{install}/{workspace}",
            reason=reason,
            version=str(version),
            serial=str(new.serial),
        )

    await deps.db.write(restore, key=install)
    return await show_workspace(deps, user, install, workspace, None)


def _make_version(older: StateVersion, newest: StateVersion) -> NewStateVersion:
    return NewStateVersion(
        serial=newest.serial + 1,
        lineage=older.lineage,
        sha256=older.sha256,
        size=older.size,
        blob=older.blob,
        resources=older.resources,
        restored_from=older.origin,
    )
