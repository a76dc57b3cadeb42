"""What the end of a workflow means for its install."""

from exclave.control.deps import Deps
from exclave.control.install_schedules import refresh_schedules
from exclave.domain.identity import OrgId
from exclave.domain.workflows import WorkflowState
from exclave.flow.plans.kinds import WorkflowKind
from exclave.storage import configs, install_states, schedules
from exclave.storage.database import Tx

_DONE = {WorkflowKind.PROVISION: "active", WorkflowKind.DEPROVISION: "deprovisioned"}


def end_install_workflow(
    tx: Tx, deps: Deps, org: OrgId, install: str, kind: str, state: WorkflowState
) -> None:
    """Write what an install is after one of its workflows ended; only a living one has crons."""
    becomes = _DONE.get(WorkflowKind(kind))
    if becomes is None:
        return
    now = becomes if state is WorkflowState.SUCCEEDED else "failed"
    install_states.update_app_install(tx, org, install, {"state": now})
    if now == "active":
        start_schedules(tx, deps, org, install)
    elif now == "deprovisioned":
        schedules.drop_schedules(tx, org, install)
    tx.wake(f"install:{install}", "installs")


def start_schedules(tx: Tx, deps: Deps, org: OrgId, install: str) -> None:
    """Make the schedules of an install those of the config that it is on now."""
    row = install_states.find_app_install(tx, org, install)
    config = None if row is None else configs.find_config(tx, org, row.config_id)
    if config is not None:
        refresh_schedules(tx, deps, org, install, config)
