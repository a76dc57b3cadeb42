"""Queries for the Stacks of installs: their versions, and the codes that fetch them."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import delete, insert, select, update

from exclave.domain.identity import OrgId
from exclave.storage.engine.database import AnyRow, Tx
from exclave.storage.tables.core import enrolments
from exclave.storage.tables.installs import stack_versions
from exclave.storage.tables.stacks import stack_codes

AWAITING = "awaiting"
"""The customer has not run it yet."""
INCOMPLETE = "incomplete"
"""It runs, and the customer still owes an input."""
ACTIVE = "active"
REMOVED = "removed"


def add_version(tx: Tx, org: OrgId, stack: str, install: str, version: int, config_id: str) -> None:
    """Make a version of an install's Stack that the customer is to run."""
    row = {"org_id": org, "id": stack, "install_id": install, "version": version}
    told = {"config_id": config_id, "state": AWAITING, "outputs": {}, "created_at": tx.now}
    tx.run(insert(stack_versions).values(**row, **told))


def find_newest(tx: Tx, org: OrgId, install: str, *, lock: bool = False) -> AnyRow | None:
    """Find the newest version of an install's Stack."""
    mine = (stack_versions.c.org_id == org, stack_versions.c.install_id == install)
    query = select(stack_versions).where(*mine).order_by(stack_versions.c.version.desc()).limit(1)
    return tx.first(query.with_for_update() if lock else query)


def update_version(tx: Tx, org: OrgId, stack: str, values: Mapping[str, Any]) -> None:
    """Write what became of a version."""
    tx.update_each(stack_versions, [{"org_id": org, "id": stack, **values}])


def add_code(tx: Tx, org: OrgId, row: Mapping[str, Any]) -> None:
    """Store a code by its hash."""
    tx.run(insert(stack_codes).values(org_id=org, created_at=tx.now, **row))


def find_code(tx: Tx, hashed: str, *, lock: bool = True) -> AnyRow | None:
    """Find a code of any org that is still good, with whether its token was spent; lock both."""
    joined = stack_codes.join(
        enrolments,
        (enrolments.c.org_id == stack_codes.c.org_id)
        & (enrolments.c.id == stack_codes.c.enrolment_id),
    )
    query = select(stack_codes, enrolments.c.used_at).select_from(joined)
    where = (stack_codes.c.hash == hashed, stack_codes.c.expires_at > tx.now)
    found = query.where(*where)
    return tx.first(found.with_for_update() if lock else found)


def point_code(tx: Tx, org: OrgId, code: str, enrolment: str) -> None:
    """Store the newest token that a code was exchanged for."""
    tx.update_each(stack_codes, [{"org_id": org, "id": code, "enrolment_id": enrolment}])


def drop_codes(tx: Tx, org: OrgId, install: str) -> None:
    """Make all codes of an install void."""
    mine = (stack_codes.c.org_id == org, stack_codes.c.install_id == install)
    tx.run(delete(stack_codes).where(*mine))


def void_enrolments(tx: Tx, org: OrgId, install: str, at: datetime) -> None:
    """Make the unspent tokens of an install's queue void."""
    mine = (enrolments.c.org_id == org, enrolments.c.queue_id == install)
    unspent = (enrolments.c.used_at.is_(None), enrolments.c.expires_at > at)
    tx.run(update(enrolments).where(*mine, *unspent).values(expires_at=at))
