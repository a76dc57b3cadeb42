"""Queries for Stacks: versions of an install's Stack, and the codes that fetch their files."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime

from sqlalchemy import delete, insert, select, update

from exclave.base.json_values import JsonObject
from exclave.domain.identity import OrgId
from exclave.domain.stacks import RUN, StackCode, StackState, StackVersion, StoredFile
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
    stack_versions.c.digest,
    stack_versions.c.files,
    stack_versions.c.generator,
    stack_versions.c.applied_digest,
    stack_versions.c.applied_at,
    stack_versions.c.report,
    stack_versions.c.beacon,
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


def list_versions(tx: Tx, org: OrgId, install: str, limit: int) -> Sequence[StackVersion]:
    """List the last versions of an install's Stack, newest first."""
    mine = (stack_versions.c.org_id == org, stack_versions.c.install_id == install)
    query = _SELECT_VERSION.where(*mine).order_by(stack_versions.c.version.desc())
    return tx.all(query.limit(limit), StackVersion)


def find_version(tx: Tx, org: OrgId, install: str, number: int) -> StackVersion | None:
    """Return a version of an install's Stack by its number, or None."""
    mine = (stack_versions.c.org_id == org, stack_versions.c.install_id == install)
    return tx.first(_SELECT_VERSION.where(*mine, stack_versions.c.version == number), StackVersion)


def find_by_id(tx: Tx, org: OrgId, stack: str) -> StackVersion | None:
    """Return a version by its id, or None."""
    mine = (stack_versions.c.org_id == org, stack_versions.c.id == stack)
    return tx.first(_SELECT_VERSION.where(*mine), StackVersion)


def find_with_digest(tx: Tx, org: OrgId, install: str, digest: str) -> StackVersion | None:
    """Return the newest version of an install's Stack that has this digest, or None."""
    mine = (stack_versions.c.org_id == org, stack_versions.c.install_id == install)
    query = _SELECT_VERSION.where(*mine, stack_versions.c.digest == digest)
    return tx.first(query.order_by(stack_versions.c.version.desc()).limit(1), StackVersion)


def find_run(tx: Tx, org: OrgId, install: str) -> StackVersion | None:
    """Return the version of an install's Stack that the customer runs, or None."""
    mine = (stack_versions.c.org_id == org, stack_versions.c.install_id == install)
    query = _SELECT_VERSION.where(*mine, stack_versions.c.state.in_(RUN))
    return tx.first(query.order_by(stack_versions.c.version.desc()).limit(1), StackVersion)


def find_model(tx: Tx, org: OrgId, stack: str) -> JsonObject | None:
    """Return the stored model of a version, or None if it has none."""
    mine = (stack_versions.c.org_id == org, stack_versions.c.id == stack)
    row = tx.first(select(stack_versions.c.model).where(*mine))
    return None if row is None else row[0]


def store_model(tx: Tx, org: OrgId, stack: str, digest: str, model: JsonObject) -> None:
    """Store what a version is made from."""
    tx.update_each(stack_versions, [{"org_id": org, "id": stack, "digest": digest, "model": model}])


def store_files(
    tx: Tx, org: OrgId, stack: str, generator: str, files: Sequence[StoredFile]
) -> None:
    """Store the files of a version as they were rendered; those stored before stay."""
    mine = (stack_versions.c.org_id == org, stack_versions.c.id == stack)
    rows = [asdict(file) for file in files]
    first = stack_versions.c.files.is_(None)
    tx.run(update(stack_versions).where(*mine, first).values(files=rows, generator=generator))


def store_beacon(tx: Tx, org: OrgId, stack: str, state: StackState, beacon: JsonObject) -> None:
    """Store what a machine that proved nothing has said, while nobody runs the version."""
    mine = (stack_versions.c.org_id == org, stack_versions.c.id == stack)
    waits = stack_versions.c.state.in_((StackState.AWAITING, StackState.BOOTING))
    tx.run(update(stack_versions).where(*mine, waits).values(state=state, beacon=beacon))


def store_applied(
    tx: Tx, org: OrgId, stack: str, digest: str, at: datetime, report: JsonObject
) -> None:
    """Store that a version is applied, and what its runner says about it."""
    row = {"applied_digest": digest, "applied_at": at, "report": report}
    tx.update_each(stack_versions, [{"org_id": org, "id": stack, **row}])


def supersede(tx: Tx, org: OrgId, install: str, keep: str) -> None:
    """Mark all versions of an install's Stack as superseded but one and those after it."""
    mine = (stack_versions.c.org_id == org, stack_versions.c.install_id == install)
    kept = select(stack_versions.c.version).where(
        stack_versions.c.org_id == org, stack_versions.c.id == keep
    )
    older = stack_versions.c.version < kept.scalar_subquery()
    tx.run(update(stack_versions).where(*mine, older).values(state=StackState.SUPERSEDED))


def reopen_later(tx: Tx, org: OrgId, install: str, number: int) -> None:
    """Let versions after the one that the customer runs wait for the customer again."""
    mine = (stack_versions.c.org_id == org, stack_versions.c.install_id == install)
    later = (stack_versions.c.version > number, stack_versions.c.state.in_(RUN))
    tx.run(update(stack_versions).where(*mine, *later).values(state=StackState.AWAITING))


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
