"""Queries for the values of an install's inputs: versions that are only ever added."""

from collections.abc import Mapping

from sqlalchemy import insert, select, update

from exclave.domain.identity import OrgId
from exclave.storage.engine.database import AnyRow, Tx
from exclave.storage.install_states import note_document
from exclave.storage.tables.installs import install_inputs


def add_version(
    tx: Tx,
    org: OrgId,
    install: str,
    version: int,
    *,
    values: Mapping[str, str],
    sealed: Mapping[str, str],
    by: str,
) -> None:
    """Store all values that are set from now on."""
    note_document(tx, org, install, values, sealed)
    row = {"org_id": org, "install_id": install, "version": version, "by": by}
    told = {"values": dict(values), "sealed": dict(sealed), "at": tx.now}
    tx.run(insert(install_inputs).values(**row, **told))


def find_version(tx: Tx, org: OrgId, install: str, version: int | None = None) -> AnyRow | None:
    """Find one version, or the newest."""
    mine = (install_inputs.c.org_id == org, install_inputs.c.install_id == install)
    query = select(install_inputs).where(*mine)
    if version is not None:
        query = query.where(install_inputs.c.version == version)
    return tx.first(query.order_by(install_inputs.c.version.desc()).limit(1))


def forget_sealed(tx: Tx, org: OrgId, install: str) -> None:
    """Drop the sensitive values of all versions."""
    mine = (install_inputs.c.org_id == org, install_inputs.c.install_id == install)
    tx.run(update(install_inputs).where(*mine).values(sealed={}))
