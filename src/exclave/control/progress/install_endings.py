"""Update an install when one of its workflows has ended."""

from exclave.control.deps import Deps
from exclave.control.install_state.options import is_enabled
from exclave.control.install_state.schedules import refresh_schedules
from exclave.domain.identity import OrgId
from exclave.domain.installs import AppInstall, InstallState, decide_state, is_empty, name_part
from exclave.domain.lanes import SANDBOX
from exclave.domain.workflows import WorkflowKind, WorkflowState
from exclave.storage import app_installs, configs, install_parts, schedules
from exclave.storage.engine.database import Tx

_DONE = {
    WorkflowKind.PROVISION: InstallState.ACTIVE,
    WorkflowKind.DEPROVISION: InstallState.DEPROVISIONED,
}


def end_install_workflow(
    tx: Tx, deps: Deps, org: OrgId, install: str, kind: str, state: WorkflowState
) -> None:
    """Store an install's state after one of its workflows ended; only active ones have crons."""
    app_install = app_installs.find_app_install(tx, org, install)
    now = (
        None
        if app_install is None
        else _decide_state(tx, org, app_install, WorkflowKind(kind), state)
    )
    if now is None:
        return
    app_installs.set_state(tx, org, install, now)
    if now is InstallState.ACTIVE:
        start_schedules(tx, deps, org, install, refuse=False)
    elif is_empty(now):
        schedules.drop_schedules(tx, org, install)
    tx.wake(f"install:{install}", "installs")


def _decide_state(
    tx: Tx, org: OrgId, install: AppInstall, kind: WorkflowKind, state: WorkflowState
) -> InstallState | None:
    """Return the new state of an install; None if it stays as it is."""
    if kind in _DONE:
        if state is WorkflowState.SUCCEEDED:
            return _DONE[kind]
        return (
            _read_parts(tx, org, install)
            if state is WorkflowState.CANCELLED
            else InstallState.FAILED
        )
    is_whole = kind is WorkflowKind.REPROVISION and state is WorkflowState.SUCCEEDED
    if is_whole and install.state in {InstallState.NEW, InstallState.FAILED}:
        new_state = _read_parts(tx, org, install)
        return new_state if new_state is InstallState.ACTIVE else None
    return None


def _read_parts(tx: Tx, org: OrgId, install: AppInstall) -> InstallState:
    """Return the state of an install from its parts: a cancelled workflow may have changed none."""
    config = configs.find_config(tx, org, install.config_id)
    states = {part.name: part.state for part in install_parts.list_parts(tx, org, install.id)}
    if config is None:
        return decide_state(states, None)
    components = config.outline["components"]
    wanted = [
        name_part(component["name"])
        for component in components
        if is_enabled(component, install.toggles)
    ]
    wanted += [SANDBOX] if config.outline["sandbox"] else []
    return decide_state(states, wanted)


def start_schedules(tx: Tx, deps: Deps, org: OrgId, install: str, *, refuse: bool = True) -> None:
    """Replace the schedules of an install by those of its current config."""
    app_install = app_installs.find_app_install(tx, org, install)
    config = None if app_install is None else configs.find_config(tx, org, app_install.config_id)
    if config is not None:
        refresh_schedules(tx, deps, org, install, config, refuse=refuse)
