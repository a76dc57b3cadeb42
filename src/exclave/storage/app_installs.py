"""Queries for installs of an app: their config, state, options and versions."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import bindparam, insert, update

from exclave.domain.identity import OrgId
from exclave.domain.installs import (
    AppInstall,
    ApprovalOption,
    InstallState,
    ManagedBy,
    NewAppInstall,
    Overrides,
)
from exclave.storage.engine.database import Tx
from exclave.storage.engine.statements import Prepared
from exclave.storage.install_rows import InstallRow, read_app_install, select_installs
from exclave.storage.tables.installs import app_installs, installs


def add_app_install(tx: Tx, org: OrgId, install: str, new: NewAppInstall) -> None:
    """Store which app an install runs."""
    tx.run(
        insert(app_installs).values(
            org_id=org,
            install_id=install,
            app_id=new.app_id,
            config_id=new.config_id,
            config_by=new.config_by,
            target=new.target,
            state=new.state,
            here=new.here,
            managed_by=ManagedBy.PEOPLE,
            state_version=1,
            input_version=1,
            region=new.place.region or None,
            account=new.place.account or None,
            tenant=new.place.tenant or None,
            **_write_approval(new.approval),
        )
    )


_FIND = Prepared(
    select_installs().where(
        installs.c.org_id == bindparam("org"), installs.c.id == bindparam("install")
    ),
    InstallRow,
)


def find_app_install(tx: Tx, org: OrgId, install: str) -> AppInstall | None:
    """Find an install of an app by id, also a deleted one: its workflows can be retried."""
    row = tx.first(_FIND, org=org, install=install)
    return None if row is None else read_app_install(row)


def set_state(tx: Tx, org: OrgId, install: str, state: InstallState) -> None:
    """Store how far an install is."""
    _update(tx, org, install, state=state)


def set_config(tx: Tx, org: OrgId, install: str, config: str, by: str) -> None:
    """Move an install to a config; `by` is the person who chose it."""
    _update(tx, org, install, config_id=config, config_by=by)


def set_state_version(tx: Tx, org: OrgId, install: str, version: int) -> None:
    """Store the number of the newest version of an install's state."""
    _update(tx, org, install, state_version=version)


def set_input_version(tx: Tx, org: OrgId, install: str, version: int) -> None:
    """Store the number of the newest version of an install's inputs."""
    _update(tx, org, install, input_version=version)


def set_approval(tx: Tx, org: OrgId, install: str, approval: ApprovalOption) -> None:
    """Store who approves the plans of an install."""
    _update(tx, org, install, **_write_approval(approval))


def set_managed_by(tx: Tx, org: OrgId, install: str, managed_by: ManagedBy) -> None:
    """Store who sets the inputs and options of an install."""
    _update(tx, org, install, managed_by=managed_by)


def set_options(
    tx: Tx,
    org: OrgId,
    install: str,
    *,
    managed_by: ManagedBy,
    approval: ApprovalOption,
    toggles: Mapping[str, bool],
    overrides: Overrides,
) -> None:
    """Store all options of an install, and who sets them."""
    _update(
        tx,
        org,
        install,
        managed_by=managed_by,
        toggles=toggles,
        overrides=overrides,
        **_write_approval(approval),
    )


def _update(tx: Tx, org: OrgId, install: str, **values: Any) -> None:
    mine = (app_installs.c.org_id == org, app_installs.c.install_id == install)
    tx.run(update(app_installs).where(*mine).values(**values))


def _write_approval(approval: ApprovalOption) -> dict[str, bool | ApprovalOption | None]:
    auto = approval is ApprovalOption.AUTO
    return {
        "approve_all": approval is ApprovalOption.APPROVE_ALL,
        "approval": approval if auto else None,
    }
