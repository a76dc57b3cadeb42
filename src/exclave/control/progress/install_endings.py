"""Update an install when one of its workflows has ended."""

from exclave.control.deps import Deps
from exclave.control.install_state.options import is_enabled, read_toggles
from exclave.control.install_state.parts import ABSENT, ACTIVE
from exclave.control.install_state.schedules import refresh_schedules
from exclave.domain.identity import OrgId
from exclave.domain.workflows import WorkflowState
from exclave.flow.plans.kinds import WorkflowKind
from exclave.storage import configs, install_parts, install_states, schedules
from exclave.storage.engine.database import AnyRow, Tx

_DONE = {WorkflowKind.PROVISION: "active", WorkflowKind.DEPROVISION: "deprovisioned"}
_NEW, _LIVING = "new", "active"


def end_install_workflow(
    tx: Tx, deps: Deps, org: OrgId, install: str, kind: str, state: WorkflowState
) -> None:
    """Store the state of an install after a workflow ended, and start or drop its schedules."""
    row = install_states.find_app_install(tx, org, install)
    now = None if row is None else _find_new_state(tx, org, row, WorkflowKind(kind), state)
    if now is None:
        return
    install_states.update_app_install(tx, org, install, {"state": now})
    if now == _LIVING:
        start_schedules(tx, deps, org, install, refuse=False)
    elif now in {"deprovisioned", _NEW}:
        schedules.drop_schedules(tx, org, install)
    tx.wake(f"install:{install}", "installs")


def _find_new_state(
    tx: Tx, org: OrgId, row: AnyRow, kind: WorkflowKind, state: WorkflowState
) -> str | None:
    """Return the new state of an install; None if it is unchanged."""
    if kind in _DONE:
        if state is WorkflowState.SUCCEEDED:
            return _DONE[kind]
        return _state_by_parts(tx, org, row) if state is WorkflowState.CANCELLED else "failed"
    is_whole = kind is WorkflowKind.REPROVISION and state is WorkflowState.SUCCEEDED
    if is_whole and row.state in {_NEW, "failed"} and _state_by_parts(tx, org, row) == _LIVING:
        return _LIVING
    return None


def _state_by_parts(tx: Tx, org: OrgId, row: AnyRow) -> str:
    """Return the state of an install by its parts: a cancelled workflow may have changed none."""
    config = configs.find_config(tx, org, row.config_id)
    states = {part.part: part.state for part in install_parts.list_parts(tx, org, row.install_id)}
    if all(state == ABSENT for state in states.values()):
        return _NEW
    if config is None:
        return "failed"
    toggles, components = read_toggles(row), config.outline["components"]
    wanted = [f"component:{each['name']}" for each in components if is_enabled(each, toggles)]
    wanted += ["sandbox"] if config.outline["sandbox"] else []
    return _LIVING if all(states.get(part) == ACTIVE for part in wanted) else "failed"


def start_schedules(tx: Tx, deps: Deps, org: OrgId, install: str, *, refuse: bool = True) -> None:
    """Replace the schedules of an install by those of its current config."""
    row = install_states.find_app_install(tx, org, install)
    config = None if row is None else configs.find_config(tx, org, row.config_id)
    if config is not None:
        refresh_schedules(tx, deps, org, install, config, refuse=refuse)
