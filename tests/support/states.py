"""States of workspaces that are lost, as by a control plane that was restored from an old backup."""

from sqlalchemy import delete

from exclave.control.deps import Deps
from exclave.domain.identity import OrgId, QueueId
from exclave.storage.tables.terraform import tf_states


async def lose_state(deps: Deps, org: OrgId, queue: QueueId, workspace: str) -> None:
    """Forget all versions of a workspace's state."""
    at = tf_states.c
    mine = (at.org_id == org, at.queue_id == queue, at.workspace == workspace)
    await deps.db.write(lambda tx: tx.run(delete(tf_states).where(*mine)).rowcount)
