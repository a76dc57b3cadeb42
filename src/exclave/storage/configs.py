"""Queries for config versions and their parts."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import func, insert, select

from exclave.domain.identity import OrgId
from exclave.storage.engine.database import AnyRow, Tx
from exclave.storage.tables.apps import builds, config_parts, configs


def add_config(tx: Tx, row: Mapping[str, Any]) -> None:
    """Store a version; it never changes afterwards."""
    tx.run(insert(configs).values(created_at=tx.now, **row))


def add_parts(tx: Tx, rows: Sequence[Mapping[str, Any]]) -> None:
    """Store the parts of a version."""
    if rows:
        tx.run(insert(config_parts), rows)


def find_config(tx: Tx, org: OrgId, config_id: str) -> AnyRow | None:
    """Find a version by its id."""
    return tx.first(select(configs).where(configs.c.org_id == org, configs.c.id == config_id))


def find_version(tx: Tx, org: OrgId, app_id: str, version: int) -> AnyRow | None:
    """Find a version of an app by its number."""
    of_app = (configs.c.org_id == org, configs.c.app_id == app_id)
    return tx.first(select(configs).where(*of_app, configs.c.version == version))


def read_last_version(tx: Tx, org: OrgId, app_id: str) -> int:
    """Read the number of an app's newest version; 0 if it has none."""
    of_app = (configs.c.org_id == org, configs.c.app_id == app_id)
    row = tx.first(select(func.max(configs.c.version).label("last")).where(*of_app))
    return 0 if row is None or row.last is None else int(row.last)


def list_configs(
    tx: Tx, org: OrgId, app_id: str, before: int | None, limit: int
) -> Sequence[AnyRow]:
    """List the versions of an app, newest first."""
    query = select(configs).where(configs.c.org_id == org, configs.c.app_id == app_id)
    if before is not None:
        query = query.where(configs.c.version < before)
    return tx.all(query.order_by(configs.c.version.desc()).limit(limit))


def find_part(tx: Tx, org: OrgId, config_id: str, section: str, name: str = "") -> AnyRow | None:
    """Find one part of a version; those of which there is only one have no name."""
    return tx.first(
        select(config_parts).where(
            config_parts.c.org_id == org,
            config_parts.c.config_id == config_id,
            config_parts.c.section == section,
            config_parts.c.name == name,
        )
    )


def list_parts(tx: Tx, org: OrgId, config_id: str, section: str) -> Sequence[AnyRow]:
    """List the parts of one section, in the order of the app."""
    of_section = (config_parts.c.config_id == config_id, config_parts.c.section == section)
    return tx.all(
        select(config_parts)
        .where(config_parts.c.org_id == org, *of_section)
        .order_by(config_parts.c.position)
    )


def list_all_parts(tx: Tx, org: OrgId, config_id: str) -> Sequence[AnyRow]:
    """List every part of a version, in the order of the app."""
    return tx.all(
        select(config_parts)
        .where(config_parts.c.org_id == org, config_parts.c.config_id == config_id)
        .order_by(config_parts.c.position)
    )


def list_part_hashes(tx: Tx, org: OrgId, config_id: str) -> Sequence[AnyRow]:
    """List section, name and hash of every part of a version."""
    light = (config_parts.c.section, config_parts.c.name, config_parts.c.hash)
    return tx.all(
        select(*light)
        .where(config_parts.c.org_id == org, config_parts.c.config_id == config_id)
        .order_by(config_parts.c.position)
    )


def list_new_builds(tx: Tx, org: OrgId, build_ids: Sequence[str]) -> Sequence[AnyRow]:
    """Return the part and the workflow of each of these builds."""
    mine = (builds.c.org_id == org, builds.c.id.in_(build_ids))
    return tx.all(select(builds.c.part, builds.c.workflow_id).where(*mine).order_by(builds.c.part))
