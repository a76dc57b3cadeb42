"""The serials of the states of parts."""

from exclave.domain.identity import OrgId, QueueId
from exclave.jobspec.workspaces import name_workspace
from exclave.storage import tf_states
from exclave.storage.engine.database import Tx


def find_state_serial(tx: Tx, org: OrgId, install: str, component: str) -> int:
    """Return the serial of a part's newest state; 0 if there is none."""
    newest = tf_states.find_newest(tx, org, QueueId(install), name_workspace(component))
    return 0 if newest is None else newest.serial
