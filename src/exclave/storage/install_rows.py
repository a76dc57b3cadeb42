"""Installs as queries read them: the columns of an install and of its app, turned into values."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Select, select

from exclave.domain.clouds import CloudPlace
from exclave.domain.identity import InstallId
from exclave.domain.installs import (
    AppInstall,
    ApprovalOption,
    Install,
    InstallState,
    ManagedBy,
    Overrides,
    PlainInstall,
    decide_approval,
)
from exclave.domain.stacks import Cloud
from exclave.storage.tables.apps import apps, configs
from exclave.storage.tables.installs import app_installs, installs

_newest = configs.alias("newest")
_pinned = configs.alias("pinned")
_OF_INSTALL = (
    app_installs.c.org_id == installs.c.org_id,
    app_installs.c.install_id == installs.c.id,
)


class InstallRow(NamedTuple):
    """An install beside its app.

    Without an app, all fields after `created_at` are None; `approve_all` is the one to ask.
    """

    id: InstallId
    name: str
    labels: Mapping[str, str]
    created_at: datetime
    app_id: str
    app_name: str
    config_id: str
    config_version: int
    config_by: str | None
    newest_id: str
    newest_version: int
    target: Cloud
    state: InstallState
    here: bool
    managed_by: ManagedBy
    state_version: int
    input_version: int
    approve_all: bool | None
    approval: ApprovalOption | None
    toggles: Mapping[str, bool] | None
    overrides: Overrides | None
    region: str | None
    account: str | None
    tenant: str | None


def select_installs(*more: ColumnElement[bool]) -> Select[Any]:
    """Select the columns of `InstallRow`.

    `more` are conditions of the join with the app: they keep a database from reading all of it.
    """
    pinned = (_pinned.c.org_id == installs.c.org_id, _pinned.c.id == app_installs.c.config_id)
    newest = (_newest.c.org_id == installs.c.org_id, _newest.c.id == apps.c.config_id)
    app = (apps.c.org_id == installs.c.org_id, apps.c.id == app_installs.c.app_id)
    joined = (
        installs.outerjoin(app_installs, _all((*_OF_INSTALL, *more)))
        .outerjoin(apps, _all(app))
        .outerjoin(_pinned, _all(pinned))
        .outerjoin(_newest, _all(newest))
    )
    return select(
        installs.c.id,
        installs.c.name,
        installs.c.labels,
        installs.c.created_at,
        app_installs.c.app_id,
        apps.c.name.label("app_name"),
        app_installs.c.config_id,
        _pinned.c.version.label("config_version"),
        app_installs.c.config_by,
        apps.c.config_id.label("newest_id"),
        _newest.c.version.label("newest_version"),
        app_installs.c.target,
        app_installs.c.state,
        app_installs.c.here,
        app_installs.c.managed_by,
        app_installs.c.state_version,
        app_installs.c.input_version,
        app_installs.c.approve_all,
        app_installs.c.approval,
        app_installs.c.toggles,
        app_installs.c.overrides,
        app_installs.c.region,
        app_installs.c.account,
        app_installs.c.tenant,
    ).select_from(joined)


def read_install(row: InstallRow) -> Install:
    """Return an install with or without an app."""
    return read_app_install(row) or PlainInstall(row.id, row.name, row.labels, row.created_at)


def read_app_install(row: InstallRow) -> AppInstall | None:
    """Return an install of an app; None if it has none."""
    if row.approve_all is None:
        return None
    # By position, which is checked as well, and quicker: a page of a list has a hundred of them.
    return AppInstall(
        *row[:17],
        approval=decide_approval(approve_all=row.approve_all, approval=row.approval),
        toggles=row.toggles or {},
        overrides=row.overrides or {},
        place=CloudPlace(row.region or "", row.account or "", row.tenant or ""),
    )


def _all(conditions: Sequence[ColumnElement[bool]]) -> ColumnElement[bool]:
    first, *rest = conditions
    for condition in rest:
        first &= condition
    return first
