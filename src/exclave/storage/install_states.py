"""Queries for the versions of an install's state, and for what the state is made from."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Select, insert, select

from exclave.domain.identity import OrgId
from exclave.domain.install_state import StateDocument, StateVersion
from exclave.domain.quotas import Stored
from exclave.storage.engine.database import Tx
from exclave.storage.engine.types import write_json
from exclave.storage.tables.identity import orgs
from exclave.storage.tables.installs import install_states
from exclave.storage.usage import Account, Amount, note_growth


def find_org_name(tx: Tx, org: OrgId) -> str:
    """Read the name of an org."""
    row = tx.first(select(orgs.c.name).where(orgs.c.id == org))
    return "" if row is None else str(row.name)


def add_state(
    tx: Tx,
    org: OrgId,
    install: str,
    version: int,
    cause: str,
    workflow: str | None,
    document: StateDocument,
) -> None:
    """Store the next version; those before it stay."""
    note_document(tx, org, install, document)
    tx.run(
        insert(install_states).values(
            org_id=org,
            install_id=install,
            version=version,
            at=tx.now,
            cause=cause,
            workflow_id=workflow,
            document=document,
        )
    )


def note_document(tx: Tx, org: OrgId, install: str, *documents: Mapping[str, object]) -> None:
    """Count a version of an install's documents: for the install, and for its org."""
    amount = Amount(sum(len(write_json(document)) for document in documents), 1)
    note_growth(tx, Account(org, Stored.DOCUMENTS), amount)
    note_growth(tx, Account(org, Stored.DOCUMENTS, install), amount)


def list_change_times(tx: Tx, org: OrgId, install: str, cause: str, limit: int) -> list[datetime]:
    """List when the newest versions of this cause were made, newest first."""
    mine = (install_states.c.org_id == org, install_states.c.install_id == install)
    query = select(install_states.c.at).where(*mine, install_states.c.cause == cause)
    rows = tx.all(query.order_by(install_states.c.version.desc()).limit(limit))
    return [row.at for row in rows]


def find_state(tx: Tx, org: OrgId, install: str, version: int | None = None) -> StateVersion | None:
    """Find one version, or the newest."""
    query = _select(org, install)
    if version is not None:
        query = query.where(install_states.c.version == version)
    return tx.first(query, StateVersion)


def find_state_at(tx: Tx, org: OrgId, install: str, at: datetime) -> StateVersion | None:
    """Find the version that was the newest at a moment."""
    return tx.first(_select(org, install).where(install_states.c.at <= at), StateVersion)


def _select(org: OrgId, install: str) -> Select[Any]:
    """Select the newest version."""
    mine = (install_states.c.org_id == org, install_states.c.install_id == install)
    columns = (
        install_states.c.version,
        install_states.c.at,
        install_states.c.cause,
        install_states.c.workflow_id,
        install_states.c.document,
    )
    return select(*columns).where(*mine).order_by(install_states.c.version.desc()).limit(1)
