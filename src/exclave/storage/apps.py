"""Queries for apps."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import Select, func, insert, select, update

from exclave.domain.apps import App, ListedApp
from exclave.domain.configs import Config
from exclave.domain.identity import InstallId, OrgId
from exclave.storage.engine.database import Tx
from exclave.storage.engine.statements import find_row_maker
from exclave.storage.tables.apps import apps, configs
from exclave.storage.tables.installs import app_installs, installs


class InstalledConfig(NamedTuple):
    """An install and the version of its app that it runs."""

    id: InstallId
    name: str
    config_id: str


def add_app(tx: Tx, org: OrgId, app_id: str, name: str, by: str) -> None:
    """Create an app that has no version yet."""
    tx.run(
        insert(apps).values(
            org_id=org,
            id=app_id,
            name=name,
            config_id=None,
            created_at=tx.now,
            created_by=by,
        )
    )


def find_app(tx: Tx, org: OrgId, app_id: str) -> App | None:
    """Find an app by its id."""
    return tx.first(select(apps).where(apps.c.org_id == org, apps.c.id == app_id), App)


def find_app_named(tx: Tx, org: OrgId, name: str) -> App | None:
    """Find an app by its unique name."""
    return tx.first(select(apps).where(apps.c.org_id == org, apps.c.name == name), App)


def lock_app(tx: Tx, org: OrgId, app_id: str) -> App | None:
    """Find an app, and let no other transaction give it a version meanwhile."""
    mine = (apps.c.org_id == org, apps.c.id == app_id)
    return tx.first(select(apps).where(*mine).with_for_update(), App)


def set_config(tx: Tx, org: OrgId, app_id: str, config_id: str) -> None:
    """Make a version the current one."""
    mine = (apps.c.org_id == org, apps.c.id == app_id)
    tx.run(update(apps).where(*mine).values(config_id=config_id))


def list_apps(
    tx: Tx, org: OrgId, after: str, limit: int, only: Sequence[str] | None
) -> Sequence[ListedApp]:
    """List apps, oldest first, each with its current version and the number of its installs."""
    current = (configs.c.org_id == apps.c.org_id) & (configs.c.id == apps.c.config_id)
    of_app = (app_installs.c.org_id == apps.c.org_id, app_installs.c.app_id == apps.c.id)
    of_install = (installs.c.org_id == apps.c.org_id, installs.c.id == app_installs.c.install_id)
    count = (
        select(func.count())
        .where(*of_app, *of_install, installs.c.deleted_at.is_(None))
        .scalar_subquery()
    )
    query = (
        select(apps, configs, count)
        .outerjoin(configs, current)
        .where(apps.c.org_id == org, apps.c.id > after)
    )
    if only is not None:
        query = query.where(apps.c.id.in_(only))
    return [_read_listed(row) for row in tx.run(query.order_by(apps.c.id).limit(limit))]


def list_installs_beside(
    tx: Tx, org: OrgId, app_id: str, config_ids: Sequence[str], limit: int
) -> Sequence[InstalledConfig]:
    """List the installs of an app that run none of these versions, oldest first."""
    query = _beside(org, app_id, config_ids).order_by(installs.c.id).limit(limit)
    return tx.all(query, InstalledConfig)


def count_installs_beside(tx: Tx, org: OrgId, app_id: str, config_ids: Sequence[str]) -> int:
    """Count them."""
    query = _beside(org, app_id, config_ids).subquery()
    row = tx.first(select(func.count().label("total")).select_from(query))
    return 0 if row is None else int(row.total)


def list_used_configs(tx: Tx, org: OrgId, app_id: str) -> Sequence[Config]:
    """List the versions of an app that some install runs."""
    used = select(app_installs.c.config_id).where(
        app_installs.c.org_id == org, app_installs.c.app_id == app_id
    )
    return tx.all(
        select(configs)
        .where(configs.c.org_id == org, configs.c.id.in_(used))
        .order_by(configs.c.version),
        Config,
    )


def _read_listed(row: Sequence[Any]) -> ListedApp:
    """Split a row into the columns of the app, those of its version, and the count."""
    app, config, count = row[: len(apps.c)], row[len(apps.c) : -1], row[-1]
    return ListedApp(_make_app(app), None if config[0] is None else _make_config(config), count)


_make_app = find_row_maker(App, tuple(apps.c.keys()))
_make_config = find_row_maker(Config, tuple(configs.c.keys()))


def _beside(org: OrgId, app_id: str, config_ids: Sequence[str]) -> Select[Any]:
    of_install = (installs.c.org_id == org) & (installs.c.id == app_installs.c.install_id)
    return (
        select(installs.c.id, installs.c.name, app_installs.c.config_id)
        .select_from(app_installs.join(installs, of_install))
        .where(app_installs.c.org_id == org, app_installs.c.app_id == app_id)
        .where(app_installs.c.config_id.not_in(config_ids), installs.c.deleted_at.is_(None))
    )
