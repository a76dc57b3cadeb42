"""Queries for Stacks: versions of an install's Stack, and the codes that fetch their files."""

from datetime import datetime

from sqlalchemy import delete, insert, select, update

from exclave.base.json_values import JsonObject
from exclave.domain.identity import OrgId
from exclave.domain.stacks import StackCode, StackState, StackVersion
from exclave.storage.engine.database import Tx
from exclave.storage.tables.installs import stack_versions
from exclave.storage.tables.runners import enrolments
from exclave.storage.tables.stacks import stack_codes

_SELECT_VERSION = select(
    stack_versions.c.id,
    stack_versions.c.version,
    stack_versions.c.state,
    stack_versions.c.config_id,
    stack_versions.c.outputs,
    stack_versions.c.created_at,
    stack_versions.c.run_at,
)
_SELECT_CODE = select(
    stack_codes.c.org_id.label("org"),
    stack_codes.c.id,
    stack_codes.c.install_id,
    stack_codes.c.enrolment_id,
    stack_codes.c.created_by,
    stack_codes.c.expires_at,
    stack_codes.c.parent_id,
    enrolments.c.used_at.is_not(None).label("is_used"),
)


def add_version(tx: Tx, org: OrgId, stack: str, install: str, version: int, config_id: str) -> None:
    """Store a new version of an install's Stack, which the customer is to run."""
    tx.run(
        insert(stack_versions).values(
            org_id=org,
            id=stack,
            install_id=install,
            version=version,
            config_id=config_id,
            state=StackState.AWAITING,
            outputs={},
            created_at=tx.now,
        )
    )


def find_newest(tx: Tx, org: OrgId, install: str, *, lock: bool = False) -> StackVersion | None:
    """Return the newest version of an install's Stack, or None."""
    mine = (stack_versions.c.org_id == org, stack_versions.c.install_id == install)
    query = _SELECT_VERSION.where(*mine).order_by(stack_versions.c.version.desc()).limit(1)
    return tx.first(query.with_for_update() if lock else query, StackVersion)


def store_report(tx: Tx, org: OrgId, stack: str, state: StackState, outputs: JsonObject) -> None:
    """Store the outputs that a version reported now, and the state that they lead to."""
    row = {"org_id": org, "id": stack, "state": state, "outputs": outputs, "run_at": tx.now}
    tx.update_each(stack_versions, [row])


def set_state(tx: Tx, org: OrgId, stack: str, state: StackState) -> None:
    """Store the state of a version."""
    tx.update_each(stack_versions, [{"org_id": org, "id": stack, "state": state}])


def add_code(tx: Tx, org: OrgId, code: StackCode, hashed: str) -> None:
    """Store a code by its hash."""
    tx.run(
        insert(stack_codes).values(
            org_id=org,
            id=code.id,
            install_id=code.install_id,
            hash=hashed,
            enrolment_id=code.enrolment_id,
            created_by=code.created_by,
            created_at=tx.now,
            expires_at=code.expires_at,
            parent_id=code.parent_id,
        )
    )


def find_code(tx: Tx, hashed: str, *, lock: bool = True) -> StackCode | None:
    """Return the code of any org that has this hash and has not expired; lock it by default."""
    joined = stack_codes.join(
        enrolments,
        (enrolments.c.org_id == stack_codes.c.org_id)
        & (enrolments.c.id == stack_codes.c.enrolment_id),
    )
    query = _SELECT_CODE.select_from(joined)
    query = query.where(stack_codes.c.hash == hashed, stack_codes.c.expires_at > tx.now)
    return tx.first(query.with_for_update() if lock else query, StackCode)


def point_code(tx: Tx, org: OrgId, code: str, enrolment: str) -> None:
    """Store the newest enrolment token that a code gave out."""
    tx.update_each(stack_codes, [{"org_id": org, "id": code, "enrolment_id": enrolment}])


def drop_codes(tx: Tx, org: OrgId, install: str) -> None:
    """Delete all codes of an install."""
    mine = (stack_codes.c.org_id == org, stack_codes.c.install_id == install)
    tx.run(delete(stack_codes).where(*mine))


def void_enrolments(tx: Tx, org: OrgId, install: str, at: datetime) -> None:
    """Let the unused enrolment tokens of an install's queue expire."""
    mine = (enrolments.c.org_id == org, enrolments.c.queue_id == install)
    unspent = (enrolments.c.used_at.is_(None), enrolments.c.expires_at > at)
    tx.run(update(enrolments).where(*mine, *unspent).values(expires_at=at))
