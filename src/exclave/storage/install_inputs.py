"""Queries for the values of an install's inputs: versions that are only ever added."""

from collections.abc import Mapping

from sqlalchemy import insert, select, update

from exclave.domain.identity import OrgId
from exclave.domain.installs import InputVersion
from exclave.storage.engine.database import Tx
from exclave.storage.install_states import note_document
from exclave.storage.tables.installs import install_inputs

_SELECT = select(
    install_inputs.c.version,
    install_inputs.c["values"],  # `.values` is a method
    install_inputs.c.sealed,
    install_inputs.c.at,
    install_inputs.c.by,
)


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
    texts = {"values": dict(values), "sealed": dict(sealed)}
    tx.run(insert(install_inputs).values(**row, **texts, at=tx.now))


def find_version(
    tx: Tx, org: OrgId, install: str, version: int | None = None
) -> InputVersion | None:
    """Find one version, or the newest."""
    mine = (install_inputs.c.org_id == org, install_inputs.c.install_id == install)
    query = _SELECT.where(*mine)
    if version is not None:
        query = query.where(install_inputs.c.version == version)
    return tx.first(query.order_by(install_inputs.c.version.desc()).limit(1), InputVersion)


def forget_sealed(tx: Tx, org: OrgId, install: str) -> None:
    """Drop the sensitive values of all versions."""
    mine = (install_inputs.c.org_id == org, install_inputs.c.install_id == install)
    tx.run(update(install_inputs).where(*mine).values(sealed={}))
