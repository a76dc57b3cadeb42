"""Queries for config versions and their parts."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import func, insert, select

from exclave.domain.configs import Config, ConfigPart, NewConfig, Part
from exclave.domain.identity import OrgId
from exclave.storage.engine.database import Tx
from exclave.storage.tables.apps import config_parts, configs


class PartHash(NamedTuple):
    """A part of a version without its content."""

    section: str
    name: str
    hash: str


def add_config(tx: Tx, org: OrgId, config: NewConfig) -> None:
    """Store a version; it never changes afterwards."""
    tx.run(
        insert(configs).values(
            org_id=org,
            id=config.id,
            app_id=config.app_id,
            version=config.version,
            digest=config.digest,
            archive=config.archive,
            archive_digest=config.archive_digest,
            outline=dict(config.outline),
            created_at=tx.now,
            created_by=config.author.name,
            by_person=config.author.person,
            by_token=config.author.token,
        )
    )


def add_parts(tx: Tx, org: OrgId, config_id: str, parts: Sequence[Part]) -> None:
    """Store the parts of a version, in this order."""
    rows = [
        {
            "org_id": org,
            "config_id": config_id,
            "section": part.section,
            "name": part.name,
            "position": position,
            "hash": part.hash,
            "value": dict(part.value),
        }
        for position, part in enumerate(parts)
    ]
    if rows:
        tx.run(insert(config_parts), rows)


def find_config(tx: Tx, org: OrgId, config_id: str) -> Config | None:
    """Find a version by its id."""
    mine = (configs.c.org_id == org, configs.c.id == config_id)
    return tx.first(select(configs).where(*mine), Config)


def find_version(tx: Tx, org: OrgId, app_id: str, version: int) -> Config | None:
    """Find a version of an app by its number."""
    of_app = (configs.c.org_id == org, configs.c.app_id == app_id)
    return tx.first(select(configs).where(*of_app, configs.c.version == version), Config)


def read_last_version(tx: Tx, org: OrgId, app_id: str) -> int:
    """Read the number of an app's newest version; 0 if it has none."""
    of_app = (configs.c.org_id == org, configs.c.app_id == app_id)
    row = tx.first(select(func.max(configs.c.version).label("last")).where(*of_app))
    return 0 if row is None or row.last is None else int(row.last)


def list_configs(
    tx: Tx, org: OrgId, app_id: str, before: int | None, limit: int
) -> Sequence[Config]:
    """List the versions of an app, newest first."""
    query = select(configs).where(configs.c.org_id == org, configs.c.app_id == app_id)
    if before is not None:
        query = query.where(configs.c.version < before)
    return tx.all(query.order_by(configs.c.version.desc()).limit(limit), Config)


def find_part(
    tx: Tx, org: OrgId, config_id: str, section: str, name: str = ""
) -> ConfigPart | None:
    """Find one part of a version; those of which there is only one have no name."""
    return tx.first(
        select(config_parts).where(
            config_parts.c.org_id == org,
            config_parts.c.config_id == config_id,
            config_parts.c.section == section,
            config_parts.c.name == name,
        ),
        ConfigPart,
    )


def list_parts(tx: Tx, org: OrgId, config_id: str, section: str) -> Sequence[ConfigPart]:
    """List the parts of one section, in the order of the app."""
    of_section = (config_parts.c.config_id == config_id, config_parts.c.section == section)
    return tx.all(
        select(config_parts)
        .where(config_parts.c.org_id == org, *of_section)
        .order_by(config_parts.c.position),
        ConfigPart,
    )


def list_all_parts(tx: Tx, org: OrgId, config_id: str) -> Sequence[ConfigPart]:
    """List every part of a version, in the order of the app."""
    return tx.all(
        select(config_parts)
        .where(config_parts.c.org_id == org, config_parts.c.config_id == config_id)
        .order_by(config_parts.c.position),
        ConfigPart,
    )


def list_part_hashes(tx: Tx, org: OrgId, config_id: str) -> Sequence[PartHash]:
    """List section, name and hash of every part of a version."""
    light = (config_parts.c.section, config_parts.c.name, config_parts.c.hash)
    return tx.all(
        select(*light)
        .where(config_parts.c.org_id == org, config_parts.c.config_id == config_id)
        .order_by(config_parts.c.position),
        PartHash,
    )
